"""What figures and claims want to know about learning in the Key-to-Door experiment."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from paircredit.analysis.shown import in_order, runs_of, title
from paircredit.analysis.statistics import Interval, difference_of_times
from paircredit.envs.key_to_door import KeyToDoorConfig
from paircredit.envs.key_to_door_players import best_door_rate, best_key_rate, max_expected_return, mean_apples
from paircredit.errors import PaircreditError
from paircredit.methods.presets import preset_settings
from paircredit.runs.query import query_metrics
from paircredit.runs.read import Run, read_run

METHODS, SEARCH, SEARCHES, SWITCHES = (
    "key-to-door",
    "key-to-door-search",
    "key-to-door-searches",
    "key-to-door-switches",
)
"""Roles of runs: all methods; A2C over λ and learning rates; the others over theirs; one open choice at a time."""
VARIANTS = {METHODS: (), SEARCH: ("lambda", "learning_rate"), SEARCHES: ("tried",), SWITCHES: ("switch",)}
"""What tells members of a role apart, beside the setting and the seed."""

QUANTITIES = ("episode_return", "apple_reward", "door_reward", "key_rate")

LEARNED, OPTIMAL = 9.0, 9.5
"""Door rewards, of 10 at most, that count as learned and as (nearly) optimal."""
WINDOW = 320
"""Episodes over which the door reward is averaged before it is held against these: 20 updates of 16 episodes."""
LAST_SHARE = 0.1
"""Final values are means over this share of training, at its end."""

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


def method_labels(runs: Sequence[Run]) -> list[str]:
    """The methods of all Key-to-Door runs, in the order in which they are shown."""
    found = {run.spec["tags"]["label"] for role in VARIANTS for run in runs_of(runs, role)}
    return in_order(found)


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


def _best_values(run: Run, setting: Setting) -> dict[str, float]:
    static = {name: value for name, value in run.spec.get("env_settings", {}).items() if name in _ENVIRONMENT}
    return dict(zip(QUANTITIES, _best(KeyToDoorConfig(**static, **setting._asdict())), strict=True))


@functools.cache
def _best(config: KeyToDoorConfig) -> tuple[float, float, float, float]:
    env = config.build()
    key, apples = best_key_rate(env), config.mean * mean_apples(env)
    return max_expected_return(env), apples, config.door_reward * key * best_door_rate(env), key
