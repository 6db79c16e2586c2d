"""Key-to-Door runs with made-up numbers: every seed's door reward jumps from 0 to 10 at a known number of frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from paircredit.analysis.key_to_door_results import CENTRAL, METHODS, Setting
from paircredit.analysis.key_to_door_weights import Phases, blocks
from paircredit.runs import RunWriter

EPISODES = 16
SMALL = Phases(2, 34, 2)
"""Phases short enough for quick tests, and long enough for lags that count as far."""


def write_method(
    folder: Path,
    label: str,
    jumps: Mapping[Any, Sequence[float]],
    *,
    role: str = METHODS,
    updates: int = 400,
    stride: int = 5,
    first_seed: int = 0,
    phases: Phases = SMALL,
    arrays: Mapping[str, np.ndarray] | None = None,
    name: str | None = None,
    noise: float = 0.0,
    less_apples: bool = False,
    **spec: Any,
) -> None:
    """A run of one method.

    Args:
        folder: where to.
        label: of the method.
        jumps: for each setting (or pair of a setting and further columns of the rows) the updates after which each
            seed's door reward is 10.
        role: of the run.
        updates: how many.
        stride: how many of them make a row.
        first_seed: others follow.
        phases: of an episode.
        arrays: beside the seeds and labels of the members.
        name: of the run, unless it is that of role and label.
        noise: deviation of the door reward's rows.
        less_apples: half of the usual apples are found.
        spec: further entries of the spec.
    """
    name = name or f"{role}-{label}"
    steps = dict(zip(("key_steps", "apple_steps", "door_steps"), phases, strict=True))
    spec = {"name": name, "method": label, "updates": updates, "env_settings": steps, **spec}
    writer = RunWriter(folder / name, "training", spec | {"tags": {"role": role, "label": label}})
    members = []
    for kind, times in jumps.items():
        setting, more = kind if isinstance(kind, tuple) and not isinstance(kind, Setting) else (kind, ())
        members += [(setting, dict(more), first_seed + index, jump) for index, jump in enumerate(times)]
    generator = np.random.default_rng(0)
    for update in range(0, updates, stride):
        rows = []
        for member, (setting, more, seed, jump) in enumerate(members):
            learned = float(np.mean(np.arange(update, update + stride) >= jump))
            door = 10 * learned + noise * float(generator.normal())
            apples = setting.mean * (5 if less_apples else 10) * update / updates
            rows.append(
                {"member": member, "seed": seed, **setting._asdict(), **more, "update": update}
                | {"episodes": update * EPISODES, "frames": update * EPISODES * phases.steps}
                | {"episode_return": apples + door, "apple_reward": apples, "door_reward": door, "key_rate": learned}
            )
        writer.append(rows)
    labels = {f"label_{field}": np.array([getattr(m[0], field) for m in members]) for field in Setting._fields}
    writer.finish({"seeds": np.array([m[2] for m in members]), **labels, **(arrays or {})})


def frames(update: float, phases: Phases = SMALL) -> float:
    """After so many updates."""
    return float(update * EPISODES * phases.steps)


def weights(values: Mapping[str, float], members: int, phases: Phases = SMALL, spread: float = 0.0) -> np.ndarray:
    """Matrices [members, T, T] with a weight per block, ½ elsewhere, and a little more for each member."""
    matrix = np.full((phases.steps, phases.steps), 0.5)
    for name, chosen in blocks(phases).items():
        matrix[chosen] = values.get(name, 0.5)
    return np.stack([matrix + spread * (index - (members - 1) / 2) for index in range(members)])


LIKE_HANDCRAFTED = {
    "key → apple": 0.2,
    "key → door": 0.7,
    "apple → apple, near": 0.8,
    "apple → apple, far": 0.1,
    "apple → door": 0.3,
    "door → door": 0.8,
}


def spread(middle: float, seeds: int = 5, step: float = 4) -> list[float]:
    """Updates around a median."""
    return [middle + step * (index - seeds // 2) for index in range(seeds)]


def write_central(folder: Path, **middles: float) -> None:
    """The four methods at the central setting; medians of the updates at which they learn, by label with _ for -."""
    chosen = {"a2c": 250.0, "h_pwr": 60.0, "meta_pwr": 150.0, "meta_pwtd": 200.0} | middles
    for label, middle in chosen.items():
        write_method(folder, label.replace("_", "-"), {CENTRAL: spread(middle)})
