"""What figures and claims want to know about the runs of the Key-to-Door experiment."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from paircredit.analysis.statistics import Interval, difference_of_times
from paircredit.envs.key_to_door import KeyToDoorConfig
from paircredit.envs.key_to_door_players import best_door_rate, best_key_rate, max_expected_return, mean_apples
from paircredit.errors import PaircreditError
from paircredit.methods.presets import preset_settings
from paircredit.runs.query import query_metrics
from paircredit.runs.read import Run, read_run
from paircredit.weights import handcrafted_weights

METHODS, SEARCH, SEARCHES, SWITCHES = (
    "key-to-door",
    "key-to-door-search",
    "key-to-door-searches",
    "key-to-door-switches",
)
"""Roles of runs: all methods; A2C over λ and learning rates; the others over theirs; one open choice at a time."""
VARIANTS = {METHODS: (), SEARCH: ("lambda", "learning_rate"), SEARCHES: ("tried",), SWITCHES: ("switch",)}
"""What tells members of a role apart, beside the setting and the seed."""

CORE = ("a2c", "h-pwr", "meta-pwr", "meta-pwtd")
"""The paper's own methods, and what they are built on."""
LABELS = (*CORE, "meta-lambda", "rgm", "a2c-rr", "tvt", "synthetic-returns")
"""Methods in the order in which they are shown; others come behind them, by name."""
TITLES = {
    "a2c": "A2C",
    "h-pwr": "H-PWR",
    "meta-pwr": "Meta-PWR",
    "meta-pwtd": "Meta-PWTD",
    "meta-lambda": "Meta-λ(s)",
    "rgm": "RGM",
    "a2c-rr": "A2C-RR",
    "tvt": "TVT",
    "synthetic-returns": "Synthetic Returns",
}
QUANTITIES = ("episode_return", "apple_reward", "door_reward", "key_rate")

LEARNED, OPTIMAL = 9.0, 9.5
"""Door rewards, of 10 at most, that count as learned and as (nearly) optimal."""
WINDOW = 320
"""Episodes over which the door reward is averaged before it is held against these: 20 updates of 16 episodes."""
LAST_SHARE = 0.1
"""Final values are means over this share of training, at its end."""
NEAR, FAR = 5, 30
"""Lags inside the apple phase: at most the one is near, at least the other is far."""

_ENVIRONMENT = ("key_steps", "apple_steps", "door_steps", "layout", "fewest_apples", "most_apples", "door_reward")


class Setting(NamedTuple):
    """What apples pay, on average and in variance, and how often the agent slips."""

    mean: float
    variance: float
    slip: float

    @classmethod
    def of(cls, values: Sequence[Any]) -> Setting:
        """From recorded numbers, which may have been through single precision."""
        return cls(*(round(float(value), 6) for value in values))

    def text(self) -> str:
        """For readers; slips are named where there are some."""
        slips = f", {100 * self.slip:g} % random actions" if self.slip else ""
        return f"μ = {self.mean:g}, σ² = {self.variance:g}{slips}"


CENTRAL = Setting(5.0, 25.0, 0.0)
"""The setting on which the paper tunes, and of which it shows weights."""


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


@dataclasses.dataclass(frozen=True)
class Curves:
    """Learning curves of one method in one setting: a row per seed, a column per recorded point.

    A point is the mean over the updates that end where the next one begins.

    Attributes:
        label: of the method.
        setting: of the environment.
        variant: what `VARIANTS` names for the role of the run.
        best: the most that can be expected of each of `QUANTITIES`.
        seeds: [N].
        episodes: before each point, [P].
        frames: before each point, [P].
        values: each of `QUANTITIES`, [N, P].
    """

    label: str
    setting: Setting
    variant: tuple[Any, ...]
    best: dict[str, float]
    seeds: np.ndarray
    episodes: np.ndarray
    frames: np.ndarray
    values: dict[str, np.ndarray]

    @property
    def frames_per_episode(self) -> float:
        """Steps of an episode."""
        return float(self.frames[-1] / self.episodes[-1])

    @property
    def edges(self) -> np.ndarray:
        """Episodes before each point and after the last, which counts as long as the one before it, [P + 1]."""
        return np.append(self.episodes, 2 * self.episodes[-1] - self.episodes[-2])

    @property
    def trained(self) -> float:
        """Frames after the last point."""
        return float(self.edges[-1] * self.frames_per_episode)


def title(label: str) -> str:
    """What readers call a method; a label that nobody knows is its own title."""
    return TITLES.get(label, label)


def method_labels(runs: Sequence[Run]) -> list[str]:
    """The methods of all Key-to-Door runs, in the order in which they are shown."""
    found = {run.spec["tags"]["label"] for role in VARIANTS for run in runs_of(runs, role)}
    return [label for label in LABELS if label in found] + sorted(found.difference(LABELS))


def runs_of(runs: Sequence[Run], role: str) -> list[Run]:
    """The runs of a role."""
    return [run for run in runs if run.kind == "training" and run.spec.get("tags", {}).get("role") == role]


def all_curves(runs: Sequence[Run], role: str = METHODS) -> list[Curves]:
    """The curves of all runs of a role, by setting (those without slips first), method and variant.

    Runs may share a setting if their seeds differ and they recorded the same points.

    Raises:
        PaircreditError: two runs have the same member, or members that belong together have other points.
    """
    found: dict[tuple[Any, ...], tuple[Run, Curves]] = {}
    for run in runs_of(runs, role):
        for curves in _read(run.path, run.manifest["sha256"], VARIANTS[role]):
            place = curves.setting, curves.label, curves.variant
            found[place] = run, _joined(*found[place], run, curves) if place in found else curves
    order = {label: index for index, label in enumerate(method_labels(runs))}
    joined = [curves for _, curves in found.values()]
    return sorted(joined, key=lambda c: (c.setting.slip, c.setting, order[c.label], c.variant))


def pick_setting(settings: Sequence[Setting]) -> Setting | None:
    """The setting for figures that show one: the central one if it is there, else the first."""
    return CENTRAL if CENTRAL in settings else min(settings, default=None)


@functools.lru_cache(maxsize=16)
def _read(path: Path, manifest_sum: str, variants: tuple[str, ...]) -> tuple[Curves, ...]:
    """The curves of a run; kept, because a report asks a dozen times for files that may have 100 MB each."""
    del manifest_sum  # says that it is still the same run
    run = read_run(path)
    names = ("mean", "variance", "slip", *variants)
    columns = ", ".join(f'"{name}"' for name in ("member", "seed", "episodes", "frames", *names, *QUANTITIES))
    rows = query_metrics([run], f"SELECT {columns} FROM metrics ORDER BY member, episodes")
    members = len(np.unique(rows["member"]))
    if len(rows["member"]) % members or len(rows["member"]) // members < 2:
        raise PaircreditError(f"The members of {run.path} have not all recorded the same points, or only one.")
    by_member = {name: column.reshape(members, -1) for name, column in rows.items()}
    kinds = list(zip(*(by_member[name][:, 0].tolist() for name in names), strict=True))
    curves = []
    for kind in dict.fromkeys(kinds):
        chosen = np.array([other == kind for other in kinds])
        setting = Setting.of(kind[:3])
        curves.append(
            Curves(
                label=run.spec["tags"]["label"],
                setting=setting,
                variant=kind[3:],
                best=_best_values(run, setting),
                seeds=by_member["seed"][chosen, 0],
                episodes=by_member["episodes"][0].astype(float),
                frames=by_member["frames"][0].astype(float),
                values={name: by_member[name][chosen].astype(float) for name in QUANTITIES},
            )
        )
    return tuple(curves)


def _joined(first_run: Run, first: Curves, second_run: Run, second: Curves) -> Curves:
    if np.intersect1d(first.seeds, second.seeds).size:
        raise PaircreditError(
            f"Both {first_run.path} and {second_run.path} hold the same part of the experiment "
            f"({title(first.label)} at {first.setting.text()}); name a folder with one."
        )
    if not np.array_equal(first.episodes, second.episodes):
        raise PaircreditError(
            f"{first_run.path} and {second_run.path} have seeds of {title(first.label)} at {first.setting.text()}, "
            "but did not record the same points; run one of them again."
        )
    values = {name: np.concatenate([first.values[name], second.values[name]]) for name in QUANTITIES}
    return dataclasses.replace(first, seeds=np.concatenate([first.seeds, second.seeds]), values=values)


def smoothed(curves: Curves, quantity: str = "door_reward", window: int = WINDOW) -> tuple[np.ndarray, np.ndarray]:
    """A quantity's mean over the last `window` episodes, at the end of every point where so many have passed.

    Where the window begins inside a point, it takes that share of the point.

    Returns:
        Frames [P'] and means [N, P'].
    """
    edges, values = curves.edges, curves.values[quantity]
    sums = np.pad(np.cumsum(values * np.diff(edges), axis=1), ((0, 0), (1, 0)))
    ends = np.flatnonzero(edges >= edges[0] + window)
    begins = edges[ends] - window
    before = np.searchsorted(edges, begins, side="right") - 1
    share = (begins - edges[before]) / (edges[before + 1] - edges[before])
    begun = sums[:, before] + share * (sums[:, before + 1] - sums[:, before])
    return edges[ends] * curves.frames_per_episode, (sums[:, ends] - begun) / window


def frames_to(curves: Curves, threshold: float) -> np.ndarray:
    """For every seed the frames after which its door reward, smoothed, is first at the threshold; inf if never, [N]."""
    frames, means = smoothed(curves)
    if not len(frames):
        return np.full(len(curves.seeds), np.inf)
    reached = means >= threshold - 1e-9
    return np.where(reached.any(axis=1), frames[reached.argmax(axis=1)], np.inf)


def final_values(curves: Curves, quantity: str) -> np.ndarray:
    """A quantity's mean over the last tenth of training, for every seed, [N]."""
    edges = curves.edges
    late = edges[1:] > edges[-1] - LAST_SHARE * (edges[-1] - edges[0]) + 1e-9
    return np.average(curves.values[quantity][:, late], axis=1, weights=np.diff(edges)[late])


def value_at(curves: Curves, quantity: str, frames: float) -> np.ndarray:
    """A quantity's mean over the last tenth of the first so many frames, for every seed, [N]."""
    ends = curves.edges * curves.frames_per_episode
    chosen = (ends[1:] > (1 - LAST_SHARE) * frames + 1e-6) & (ends[:-1] < frames - 1e-6)
    return np.average(curves.values[quantity][:, chosen], axis=1, weights=np.diff(ends)[chosen])


def door_reward_at(curves: Curves, frames: float) -> np.ndarray | None:
    """The smoothed door reward of every seed after so many frames, [N]; None where training was shorter."""
    ends, means = smoothed(curves)
    at = np.flatnonzero(ends >= frames - 1e-6)
    return means[:, at[0]] if len(at) else None


def compare_times(first: Curves, second: Curves, threshold: float) -> Interval | None:
    """The first method's median frames to a door reward minus the second's, within the frames that both trained.

    None where neither median is reached in these: then nothing can be said.
    """
    limit = min(first.trained, second.trained)
    within = [np.where(times <= limit, times, np.inf) for times in (frames_to(c, threshold) for c in (first, second))]
    if not any(math.isfinite(np.median(times)) for times in within):
        return None
    return difference_of_times(*within)


def frames_text(interval: Interval) -> str:
    """A median of frames, in millions; an end of its interval that lies behind the end of training is not reached."""
    estimate, low, high = (f"{value / 1e6:.2f}" if math.isfinite(value) else "not reached" for value in interval)
    if math.isinf(interval.low):
        return "not reached"
    return f"{estimate}{' M' if math.isfinite(interval.estimate) else ''} [{low}, {high}]"


class LearningRule(NamedTuple):
    """What A2C was run with."""

    lambda_: float
    learning_rate: float


def learning_rule(run: Run) -> LearningRule:
    """λ and learning rate of a run of A2C: from its settings, else from its preset."""
    preset = preset_settings(run.spec.get("preset", "paper"), "key-to-door", "a2c", ())
    settings = {**preset, **run.spec.get("method_settings", {})}
    return LearningRule(float(settings["lambda_"]), float(settings["inner.learning_rate"]))


def phases(run: Run) -> Phases:
    """The lengths of the phases in a run."""
    settings = run.spec.get("env_settings", {})
    lengths = Phases()._asdict()
    return Phases(**{name: int(settings.get(f"{name}_steps", steps)) for name, steps in lengths.items()})


def _best_values(run: Run, setting: Setting) -> dict[str, float]:
    static = {name: value for name, value in run.spec.get("env_settings", {}).items() if name in _ENVIRONMENT}
    return dict(zip(QUANTITIES, _best(KeyToDoorConfig(**static, **setting._asdict())), strict=True))


@functools.cache
def _best(config: KeyToDoorConfig) -> tuple[float, float, float, float]:
    env = config.build()
    key, apples = best_key_rate(env), config.mean * mean_apples(env)
    return max_expected_return(env), apples, config.door_reward * key * best_door_rate(env), key


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
        if "arrays.npz" not in run.manifest["files"]:
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
                found[place] = LearnedWeights(place[1], setting, phases(run), weights, snapshots, frames)
    order = {label: index for index, label in enumerate(method_labels(runs))}
    return sorted(found.values(), key=lambda learned: (learned.setting, order[learned.label]))


def _frames_per_update(run: Run) -> float:
    found = query_metrics([run], 'SELECT max("frames") AS frames, max("update") AS updates FROM metrics')
    return float(found["frames"][0]) / max(float(found["updates"][0]), 1.0)


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
