"""What figures and claims want to know about learning in Key-to-Door."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from paircredit.envs.key_to_door import KeyToDoorConfig
from paircredit.envs.key_to_door_players import best_door_rate, best_key_rate, max_expected_return, mean_apples
from paircredit.methods.presets import preset_settings
from paircredit.results.curves import LAST_SHARE, Curve, curves, first_time
from paircredit.results.intervals import Interval, difference_of_times
from paircredit.results.names import in_order, runs_of
from paircredit.runs.read import Run
from paircredit.studies.key_to_door.runs import CENTRAL, METHODS, SEARCH, SEARCHES, SWITCHES, Setting

VARIANTS = {METHODS: (), SEARCH: ("lambda", "learning_rate"), SEARCHES: ("tried",), SWITCHES: ("switch",)}
"""What tells members of a role apart, beside the setting and the seed."""
QUANTITIES = ("episode_return", "apple_reward", "door_reward", "key_rate")
LEARNED, OPTIMAL = 9.0, 9.5
"""Door rewards, of 10 at most, that count as learned and as (nearly) optimal."""
WINDOW = 320
"""Episodes over which the door reward is averaged before it is held against these: 20 updates of 16 episodes."""

_ENVIRONMENT = ("key_steps", "apple_steps", "door_steps", "layout", "fewest_apples", "most_apples", "door_reward")


def method_labels(runs: Sequence[Run]) -> list[str]:
    """The methods of all Key-to-Door runs, in the order in which they are shown."""
    return in_order({run.spec["tags"]["label"] for role in VARIANTS for run in runs_of(runs, role)})


def all_curves(runs: Sequence[Run], role: str = METHODS) -> list[Curve]:
    """The curves of all runs of a role, by setting (those without slips first), method and variant.

    The last point of a run counts as long as the one before it.
    """

    def who(_: Run, kind: tuple[Any, ...]) -> tuple[Setting, tuple[Any, ...]]:
        return Setting.of(kind[:3]), kind[3:]

    found = curves(runs, role, who, (*Setting._fields, *VARIANTS[role]), lambda setting: f"at {setting.text()}")
    order = method_labels(runs)
    found.sort(key=lambda c: (c.place.slip, c.place, order.index(c.label), c.variant))
    return [_with_a_last_point(curve) if curve.run and curve.run.finished else curve for curve in found]


def _with_a_last_point(curve: Curve) -> Curve:
    episodes, frames = (curve.edges[axis][:-1] for axis in ("episodes", "frames"))
    edges = np.append(episodes, 2 * episodes[-1] - episodes[-2])
    return dataclasses.replace(curve, edges={"episodes": edges, "frames": edges * float(frames[-1] / episodes[-1])})


def frames_per_episode(curve: Curve) -> float:
    """Steps of an episode."""
    return float(curve.edges["frames"][-1] / curve.edges["episodes"][-1])


def best_value(curve: Curve, quantity: str) -> float:
    """The most of a quantity that can be expected where the curve was recorded."""
    assert curve.run is not None
    settings = curve.run.spec.get("env_settings", {})
    static = {name: value for name, value in settings.items() if name in _ENVIRONMENT}
    return _best(KeyToDoorConfig(**static, **curve.place._asdict()))[QUANTITIES.index(quantity)]


@functools.cache
def _best(config: KeyToDoorConfig) -> tuple[float, float, float, float]:
    env = config.build()
    key, apples = best_key_rate(env), config.mean * mean_apples(env)
    return max_expected_return(env), apples, config.door_reward * key * best_door_rate(env), key


def pick_setting(settings: Sequence[Setting]) -> Setting | None:
    """The setting for figures that show one: the central one if it is there, else the first."""
    return CENTRAL if CENTRAL in settings else min(settings, default=None)


def smoothed(curve: Curve, quantity: str = "door_reward", window: int = WINDOW) -> tuple[np.ndarray, np.ndarray]:
    """A quantity's mean over the last `window` episodes, at the end of every point where this many have passed.

    Where the window begins inside a point, it takes that share of the point.

    Returns:
        Frames [P'] and means [N, P'].
    """
    edges, values = curve.edges["episodes"], curve.values[quantity]
    sums = np.pad(np.cumsum(values * np.diff(edges), axis=1), ((0, 0), (1, 0)))
    ends = np.flatnonzero(edges >= edges[0] + window)
    begins = edges[ends] - window
    before = np.searchsorted(edges, begins, side="right") - 1
    share = (begins - edges[before]) / (edges[before + 1] - edges[before])
    begun = sums[:, before] + share * (sums[:, before + 1] - sums[:, before])
    return edges[ends] * frames_per_episode(curve), (sums[:, ends] - begun) / window


def frames_to(curve: Curve, threshold: float) -> np.ndarray:
    """For every seed the frames after which its door reward, smoothed, is first at the threshold; inf if never, [N]."""
    return first_time(*smoothed(curve), threshold - 1e-9)


def final_values(curve: Curve, quantity: str) -> np.ndarray:
    """A quantity's mean over the last tenth of training, for every seed, [N]."""
    edges = curve.edges["episodes"]
    late = edges[1:] > edges[-1] - LAST_SHARE * (edges[-1] - edges[0]) + 1e-9
    return np.average(curve.values[quantity][:, late], axis=1, weights=np.diff(edges)[late])


def value_at(curve: Curve, quantity: str, frames: float) -> np.ndarray:
    """A quantity's mean over the last tenth of the first this many frames, for every seed, [N]."""
    ends = curve.edges["episodes"] * frames_per_episode(curve)
    chosen = (ends[1:] > (1 - LAST_SHARE) * frames + 1e-6) & (ends[:-1] < frames - 1e-6)
    return np.average(curve.values[quantity][:, chosen], axis=1, weights=np.diff(ends)[chosen])


def door_reward_at(curve: Curve, frames: float) -> np.ndarray | None:
    """The smoothed door reward of every seed after this many frames, [N]; None where training was shorter."""
    ends, means = smoothed(curve)
    at = np.flatnonzero(ends >= frames - 1e-6)
    return means[:, at[0]] if len(at) else None


def compare_times(first: Curve, second: Curve, threshold: float) -> Interval | None:
    """The first method's median frames to a door reward minus the second's, within the frames that both trained.

    None where neither median is reached in these: then nothing can be said.
    """
    limit = min(first.trained, second.trained)
    within = [np.where(times <= limit, times, np.inf) for times in (frames_to(c, threshold) for c in (first, second))]
    if not any(math.isfinite(np.median(times)) for times in within):
        return None
    return difference_of_times(*within)


def frames_text(interval: Interval) -> str:
    """A median of frames, in millions; an end of its interval that lies after the end of training is not reached."""
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
