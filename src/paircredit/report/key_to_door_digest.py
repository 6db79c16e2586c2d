"""What a digest keeps of Key-to-Door: thinned curves, times and final values of every seed, and learned weights."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from paircredit.analysis.key_to_door_results import (
    LEARNED,
    OPTIMAL,
    QUANTITIES,
    VARIANTS,
    Setting,
    all_curves,
    final_values,
    frames_to,
)
from paircredit.analysis.key_to_door_weights import Phases, block_means, blocks, learned_weights, likeness
from paircredit.runs.read import Run

DOORS = (LEARNED, OPTIMAL)


def key_to_door_tables(runs: Sequence[Run], points: int) -> Iterator[tuple[str, list[str], list[list[object]]]]:
    """Name of the file, header and rows of each table that has rows.

    Args:
        runs: what to look at.
        points: of a curve, at most.
    """
    who = ["role", "method", *Setting._fields, "variant"]
    columns = [f"{name} {part}" for name in QUANTITIES for part in ("mean", "deviation")]
    times = [f"frames to {door:g}" for door in DOORS]
    tables = (
        ("key-to-door-curves.csv", [*who, "seeds", "frames", *columns], _curves(runs, points)),
        ("key-to-door-members.csv", [*who, "seed", *times, *QUANTITIES], _members(runs)),
        (
            "key-to-door-weights.csv",
            ["method", *Setting._fields, "matrix", *blocks(Phases()), "correlation"],
            _blocks(runs),
        ),
    )
    return (table for table in tables if table[2])


def _curves(runs: Sequence[Run], points: int) -> list[list[object]]:
    """All quantities of every method and setting at some hundred points, mean and deviation over seeds."""
    rows: list[list[object]] = []
    for role in VARIANTS:
        for curves in all_curves(runs, role):
            variant = " ".join(str(part) for part in curves.variant)
            names = [role, curves.label, *curves.setting, variant, len(curves.seeds)]
            edges = np.unique(np.linspace(0, len(curves.frames), points + 1).round().astype(int))
            for begin, end in itertools.pairwise(edges):
                means = [curves.values[name][:, begin:end].mean(axis=1) for name in QUANTITIES]
                numbers = [round(float(x), 4) for values in means for x in (values.mean(), values.std())]
                rows.append([*names, int(curves.frames[begin]), *numbers])
    return rows


def _members(runs: Sequence[Run]) -> list[list[object]]:
    """Of every seed the frames to a door reward, empty where it was not reached, and final values."""
    rows: list[list[object]] = []
    for role in VARIANTS:
        for curves in all_curves(runs, role):
            names = [role, curves.label, *curves.setting, " ".join(str(part) for part in curves.variant)]
            times = [["" if np.isinf(t) else round(float(t)) for t in frames_to(curves, door)] for door in DOORS]
            finals = [final_values(curves, name).round(4).tolist() for name in QUANTITIES]
            rows += [[*names, int(seed), *own] for seed, *own in zip(curves.seeds, *times, *finals, strict=True)]
    return rows


def _blocks(runs: Sequence[Run]) -> list[list[object]]:
    """Of every matrix of learned weights the mean of each block, and its correlation with the handcrafted one."""
    rows: list[list[object]] = []
    for learned in learned_weights(runs):
        numbers = [*block_means(learned.weights, learned.phases).values(), likeness(learned.weights, learned.phases)]
        for index, own in enumerate(zip(*(values.round(5).tolist() for values in numbers), strict=True)):
            rows.append([learned.label, *learned.setting, index, *own])
    return rows


def key_to_door_weights(runs: Sequence[Run]) -> dict[str, np.ndarray]:
    """Learned weights over pairs of times in half precision: mean and deviation over seeds, and the mean's course."""
    arrays: dict[str, np.ndarray] = {}
    for learned in learned_weights(runs):
        name = "-".join(["key-to-door", learned.label, *(f"{number:g}" for number in learned.setting)])
        arrays[f"{name}-mean"] = learned.weights.mean(axis=0).astype(np.float16)
        arrays[f"{name}-deviation"] = learned.weights.std(axis=0).astype(np.float16)
        if learned.snapshots is not None and learned.snapshot_frames is not None:
            arrays[f"{name}-course"] = learned.snapshots.astype(np.float32).mean(axis=1).astype(np.float16)
            arrays[f"{name}-course-frames"] = learned.snapshot_frames
    return arrays
