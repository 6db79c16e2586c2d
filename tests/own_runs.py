"""Runs of `paircredit train` with made-up numbers, in the rows that training writes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from paircredit.experiments.spec import TrainingSpec, as_json
from paircredit.runs import RunWriter

UPDATES, PER_UPDATE = 40, 10
"""Of every run; a row every two updates."""


def write_own(
    folder: Path,
    env: str = "dag",
    method: str = "a2c",
    *,
    env_settings: Mapping[str, Any] | None = None,
    method_settings: Mapping[str, Any] | None = None,
    seeds: int = 3,
    last: float = 4.0,
    more: tuple[str, ...] = (),
    arrays: dict[str, np.ndarray] | None = None,
    rows: int = UPDATES // 2,
    finished: bool = True,
) -> None:
    """A run whose return rises from 0 to about `last`, and whatever else it records along with it.

    Args:
        folder: of the run; its name is the run's.
        env: name of the environment.
        method: name of the method.
        env_settings: all of them.
        method_settings: those that differ from the preset.
        seeds: members, whose returns are a tenth apart.
        last: the return of the first member in the end.
        more: further quantities; the n-th of them is the return times n + 2.
        arrays: of the run.
        rows: of every member.
        finished: or stopped.
    """
    spec = TrainingSpec(
        folder.name,
        env,
        method,
        UPDATES,
        tuple(range(seeds)),
        dict(env_settings or {}),
        dict(method_settings or {}),
        tags={"role": "train"},
    )
    with RunWriter(folder, "training", as_json(spec)) as writer:
        for row in range(rows):
            returns = [last * row / (UPDATES // 2 - 1) + 0.1 * member for member in range(seeds)]
            writer.append(
                [
                    {"member": member, "seed": member, "update": 2 * row, "episodes": 20 * row}
                    | {"frames": 2 * row * PER_UPDATE, "episode_return": own}
                    | {name: (number + 2) * own for number, name in enumerate(more)}
                    for member, own in enumerate(returns)
                ]
            )
        if finished:
            writer.finish({"seeds": np.arange(seeds)} | (arrays or {}))
