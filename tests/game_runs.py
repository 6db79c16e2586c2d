"""Runs on Atari and MinAtar with made-up numbers, in the rows that training writes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from paircredit.analysis.game_suites import ATARI, Suite
from paircredit.experiments.games import training
from paircredit.experiments.spec import as_json
from paircredit.runs import RunWriter

ROWS = 20
"""Of every member."""
SILENT = 2
"""Rows before the first game ends."""


def write_game(
    folder: Path,
    suite: Suite,
    label: str,
    game: str,
    score: float,
    *,
    seeds: int = 5,
    frames: int = 64_000,
    spread: float = 0.02,
    silent: int = SILENT,
    stopped_after: int | None = None,
) -> None:
    """A run whose members come from random play to about the same score, half-way through training.

    Args:
        folder: where to.
        suite: of the game.
        label: of the method.
        game: its name.
        score: the mean over members.
        seeds: members.
        frames: of every member.
        spread: share of what is gained over random play by which members differ, at most.
        silent: rows before the first game ends, in which returns are 0.
        stopped_after: so many rows of the first member and one less of the last, and then it was stopped.
    """
    spec = training(suite.role, label, game, frames, seeds)
    per_update = 1280 if suite is ATARI else 320
    random = suite.random[game]
    factors = 1 + spread * np.linspace(-1, 1, seeds)
    updates = np.linspace(0, spec.updates, ROWS + 1).astype(int)[:-1]
    rows = [
        {"member": member, "seed": member, "update": int(update), "frames": int(update) * per_update}
        | {
            "episode_return": 0.0
            if row < silent
            else float(random + min(1.0, 2 * row / ROWS) * factor * (score - random))
        }
        | {"ended_episodes": float(max(0, row + 1 - silent))}
        for row, update in enumerate(updates)
        for member, factor in enumerate(factors)
    ]
    with RunWriter(folder / spec.name, "training", as_json(spec)) as writer:
        if stopped_after is not None:
            writer.append(rows[: max(0, stopped_after * seeds - 1)])
        else:
            writer.append(rows)
            writer.finish()
