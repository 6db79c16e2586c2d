"""What figures and claims want to know about weights that were learned in Key-to-Door."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from paircredit.envs.key_to_door import KeyToDoorConfig
from paircredit.results.names import runs_of
from paircredit.results.pictures import PAIR_AXES, PairAxes
from paircredit.runs.read import Run
from paircredit.studies.key_to_door.curves import method_labels
from paircredit.studies.key_to_door.runs import METHODS, Setting
from paircredit.weights import handcrafted_weights

NEAR, FAR = 5, 30
"""Lags inside the apple phase: at most the one is near, at least the other is far."""


class Phases(NamedTuple):
    """Steps of the three phases of an episode."""

    key: int = 15
    apple: int = 90
    door: int = 15

    @property
    def door_start(self) -> int:
        """Steps before the door phase."""
        return self.key + self.apple

    @property
    def steps(self) -> int:
        """Of an episode."""
        return self.key + self.apple + self.door


def phases(settings: Mapping[str, Any]) -> Phases:
    """The lengths of the phases with these settings of the environment."""
    lengths = Phases()._asdict()
    return Phases(**{name: int(settings.get(f"{name}_steps", steps)) for name, steps in lengths.items()})


def pair_axes(lengths: Phases) -> PairAxes:
    """How pairs of steps are shown: with lines between the phases."""
    return PairAxes(edges=(0, lengths.key, lengths.door_start, lengths.steps), names=("key", "apples", "door"))


def _pair_axes(settings: Mapping[str, Any], shape: tuple[int, ...], by_state: bool) -> PairAxes | None:
    """The same for a run of whoever, if its weights are over the steps of such an episode."""
    del by_state
    return pair_axes(phases(settings)) if shape == (phases(settings).steps,) * 2 else None


PAIR_AXES["key-to-door"] = _pair_axes


@dataclasses.dataclass(frozen=True)
class LearnedWeights:
    """Weights that a method learned in one setting.

    Attributes:
        label: of the method.
        setting: of the environment.
        phases: of an episode.
        weights: at the end, a matrix per seed, [N, T, T]: row t for the action at t, column k for what arrives with
            transition k; below the diagonal there may be anything.
        snapshots: during training, [S, N, T, T], or none.
        snapshot_frames: when, [S].
    """

    label: str
    setting: Setting
    phases: Phases
    weights: np.ndarray
    snapshots: np.ndarray | None
    snapshot_frames: np.ndarray | None


def learned_weights(runs: Sequence[Run]) -> list[LearnedWeights]:
    """The learned weights of every method and setting, seeds of several runs together (snapshots: of the first)."""
    found: dict[tuple[Setting, str], LearnedWeights] = {}
    for run in runs_of(runs, METHODS):
        if not run.finished or "arrays.npz" not in run.manifest["files"]:
            continue
        arrays = run.arrays()
        if "weights" not in arrays:
            continue
        labels = zip(*(arrays[f"label_{name}"].tolist() for name in Setting._fields), strict=True)
        settings = [Setting.of(values) for values in labels]
        per_update = _frames_per_update(run) if "snapshots" in arrays else 0.0
        for setting in dict.fromkeys(settings):
            chosen = np.array([other == setting for other in settings])
            weights = np.asarray(arrays["weights"][chosen], dtype=float)
            place = setting, run.spec["tags"]["label"]
            if place in found:
                weights = np.concatenate([found[place].weights, weights])
                found[place] = dataclasses.replace(found[place], weights=weights)
            else:
                snapshots = arrays["snapshots"][:, chosen] if "snapshots" in arrays else None
                frames = arrays["snapshot_updates"] * per_update if "snapshots" in arrays else None
                found[place] = LearnedWeights(
                    place[1], setting, phases(run.spec.get("env_settings", {})), weights, snapshots, frames
                )
    order = {label: index for index, label in enumerate(method_labels(runs))}
    return sorted(found.values(), key=lambda learned: (learned.setting, order[learned.label]))


def _frames_per_update(run: Run) -> float:
    frames, updates = run.columns["frames"].max(), run.columns["update"].max()
    return float(frames) / max(float(updates), 1.0)


def handcrafted(lengths: Phases) -> np.ndarray:
    """The handcrafted weights of an episode with these phases, [T, T]."""
    env = KeyToDoorConfig(key_steps=lengths.key, apple_steps=lengths.apple, door_steps=lengths.door).build()
    return np.asarray(handcrafted_weights(env).pairs, dtype=float)


def blocks(lengths: Phases) -> dict[str, np.ndarray]:
    """Which pairs of an action and a transition are of which kind; boolean matrices [T, T]."""
    action, paid = np.indices((lengths.steps, lengths.steps))
    lag = paid - action

    def phase(time: np.ndarray) -> np.ndarray:
        return (time >= lengths.key).astype(int) + (time >= lengths.door_start)

    key_rows, apple_rows, door_rows = (phase(action) == number for number in range(3))
    apples, doors = phase(paid) == 1, phase(paid) == 2
    return {
        "key → apple": key_rows & apples,
        "key → door": key_rows & doors,
        "apple → apple, near": apple_rows & apples & (lag >= 0) & (lag <= NEAR),
        "apple → apple, far": apple_rows & apples & (lag >= FAR),
        "apple → door": apple_rows & doors,
        "door → door": door_rows & doors & (lag >= 0),
    }


def block_means(weights: np.ndarray, lengths: Phases) -> dict[str, np.ndarray]:
    """The mean weight of every block, for each matrix of [N, T, T]; nan for a block that short phases leave empty."""
    return {
        name: weights[:, chosen].mean(axis=1) if chosen.any() else np.full(len(weights), np.nan)
        for name, chosen in blocks(lengths).items()
    }


def likeness(weights: np.ndarray, lengths: Phases) -> np.ndarray:
    """The correlation of each matrix of [N, T, T] with the handcrafted one, over pairs k ≥ t; 0 where all are equal."""
    upper = np.triu(np.ones((lengths.steps, lengths.steps), dtype=bool))
    wanted = handcrafted(lengths)[upper]
    found = [matrix[upper] for matrix in weights]
    return np.array([np.corrcoef(own, wanted)[0, 1] if np.ptp(own) > 0 else 0.0 for own in found])
