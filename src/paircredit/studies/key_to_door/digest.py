"""What a digest keeps of Key-to-Door: thinned curves, times and final values of every seed, and learned weights."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from paircredit.results.curves import Curve
from paircredit.results.tables import Table, plain_table
from paircredit.runs.read import Run
from paircredit.studies.key_to_door.curves import (
    LEARNED,
    OPTIMAL,
    QUANTITIES,
    VARIANTS,
    all_curves,
    final_values,
    frames_to,
)
from paircredit.studies.key_to_door.runs import Setting
from paircredit.studies.key_to_door.weights import Phases, block_means, blocks, learned_weights, likeness

POINTS = 125
"""Of a curve, at most."""
DOORS = (LEARNED, OPTIMAL)


def digest(runs: Sequence[Run]) -> dict[str, Table | None]:
    """Curves, members and learned weights."""
    who = ["role", "method", *Setting._fields, "variant"]
    columns = [f"{name} {part}" for name in QUANTITIES for part in ("mean", "deviation")]
    times = [f"frames to {door:g}" for door in DOORS]
    found = [(role, curve) for role in VARIANTS for curve in all_curves(runs, role)]
    matrices = ["method", *Setting._fields, "matrix", *blocks(Phases()), "correlation"]
    return {
        "key-to-door-curves.csv": plain_table(
            [*who, "seeds", "frames", *columns], (row for role, curve in found for row in _points(role, curve))
        ),
        "key-to-door-members.csv": plain_table(
            [*who, "seed", *times, *QUANTITIES], (row for role, curve in found for row in _members(role, curve))
        ),
        "key-to-door-weights.csv": plain_table(matrices, _blocks(runs)),
    }


def _who(role: str, curve: Curve) -> list[Any]:
    return [role, curve.label, *curve.place, " ".join(str(part) for part in curve.variant)]


def _points(role: str, curve: Curve) -> list[list[Any]]:
    """All quantities at some hundred points, mean and deviation over seeds."""
    rows: list[list[Any]] = []
    edges = np.unique(np.linspace(0, curve.values["door_reward"].shape[1], POINTS + 1).round().astype(int))
    for begin, end in itertools.pairwise(edges):
        means = [curve.values[name][:, begin:end].mean(axis=1) for name in QUANTITIES]
        numbers = [round(float(x), 4) for values in means for x in (values.mean(), values.std())]
        rows.append([*_who(role, curve), len(curve.seeds), int(curve.edges["frames"][begin]), *numbers])
    return rows


def _members(role: str, curve: Curve) -> list[list[Any]]:
    """Of every seed the frames to a door reward, empty where it was not reached, and final values."""
    times = [["" if np.isinf(t) else round(float(t)) for t in frames_to(curve, door)] for door in DOORS]
    finals = [final_values(curve, name).round(4).tolist() for name in QUANTITIES]
    members = zip(curve.seeds, *times, *finals, strict=True)
    return [[*_who(role, curve), int(seed), *own] for seed, *own in members]


def _blocks(runs: Sequence[Run]) -> list[list[Any]]:
    """Of every matrix of learned weights the mean of each block, and its correlation with the handcrafted one."""
    rows: list[list[Any]] = []
    for learned in learned_weights(runs):
        numbers = [*block_means(learned.weights, learned.phases).values(), likeness(learned.weights, learned.phases)]
        for index, own in enumerate(zip(*(values.round(5).tolist() for values in numbers), strict=True)):
            rows.append([learned.label, *learned.setting, index, *own])
    return rows


def kept_weights(runs: Sequence[Run]) -> dict[str, np.ndarray]:
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
