"""What is measured of learning in Key-to-Door, and the paper's claims that are judged by it."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence

import numpy as np

from paircredit.envs.key_to_door import KeyToDoorConfig
from paircredit.envs.key_to_door_players import best_door_rate, best_key_rate, max_expected_return, mean_apples
from paircredit.methods.presets import preset_settings
from paircredit.results.curves import LAST_SHARE, Curve, by_place, curves, first_time, labels_of, runs_of
from paircredit.results.exhibits import CORE, LEAST_SEEDS, Order, Status, claim, order, title
from paircredit.results.intervals import Interval, difference_of_times, mean_difference, median_of_times
from paircredit.runs.read import Run
from paircredit.studies.key_to_door.runs import CENTRAL, METHODS, RANKED, SEARCH, SEARCHES, SWITCHES, Setting

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
    return labels_of(runs, *VARIANTS)


def all_curves(runs: Sequence[Run], role: str = METHODS) -> list[Curve]:
    """The curves of all runs of a role, by setting (those without slips first), method and variant.

    The last point of a run counts as long as the one before it.
    """
    told_apart = (*Setting._fields, *VARIANTS[role])
    found = curves(
        runs, role, lambda _, kind: (Setting.of(kind[:3]), kind[3:]), told_apart, lambda own: f"at {own.text()}"
    )
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
    """Frames [P'] and, over the last `window` episodes, means [N, P'] at ends of points where this many have passed.

    Where the window begins inside a point, it takes that share of the point.
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


def learning_rule(run: Run) -> tuple[float, float]:
    """λ and learning rate of a run of A2C: from its settings, else from its preset."""
    preset = preset_settings(run.spec.get("preset", "paper"), "key-to-door", "a2c", ())
    settings = {**preset, **run.spec.get("method_settings", {})}
    return float(settings["lambda_"]), float(settings["inner.learning_rate"])


LEAST_SETTINGS = 3
HEURISTIC = ("tvt", "a2c-rr")
"""Methods that rely on a heuristic for the key."""
NEEDED = (*CORE, "rgm", *HEURISTIC)
BEFORE_RGM = ("h-pwr", "meta-pwr")
_WORDS: dict[Order, str] = {
    "holds": "is faster than",
    "tie": "ties with",
    "contradicted": "is slower than",
    "open": "has not come, and neither has",
}


@claim(
    "K1",
    "In the door phase H-PWR learns best and Meta-PWR fastest after it; Meta-PWTD is slower, but reaches the optimum.",
    "The Key-to-Door Experiments, learning curves",
)
def _central_order(runs: Sequence[Run]) -> tuple[Status, str]:
    methods, refusal = _at_the_centre(runs, CORE)
    if refusal:
        return "not judged", refusal
    methods["a2c"], name = _best_a2c(runs, methods["a2c"])
    names = {label: name if label == "a2c" else title(label) for label in methods}
    seeds = [len(curves.seeds) for curves in methods.values()]
    if min(seeds) < LEAST_SEEDS:
        fewest = min(methods, key=lambda label: len(methods[label].seeds))
        return "not judged", f"{names[fewest]} has {min(seeds)} seeds; at least {LEAST_SEEDS} are needed."
    regular, handcrafted, learned, errors = (methods[label] for label in CORE)
    if not np.isfinite(_median(handcrafted, OPTIMAL).estimate):
        return "not judged", f"Not even H-PWR reaches a door reward of {OPTIMAL:g}; train longer."
    second = order_of(learned, regular, LEARNED)
    if second == "open":
        return "not judged", f"Neither Meta-PWR nor A2C reaches a door reward of {LEARNED:g}; train longer."
    first = {label: order_of(handcrafted, methods[label], OPTIMAL) for label in methods if label != "h-pwr"}
    reached = np.isfinite(frames_to(errors, OPTIMAL))
    arrives = bool(np.isfinite(_median(errors, OPTIMAL).estimate))
    good = "contradicted" not in first.values() and second == "holds" and arrives
    members = " to ".join(str(count) for count in sorted({min(seeds), max(seeds)}))
    parts = [
        f"At {CENTRAL.text()}, {members} seeds, median frames to a door reward of {OPTIMAL:g}: "
        + ", ".join(f"{names[label]} {frames_text(_median(methods[label], OPTIMAL))}" for label in methods),
        f"of {LEARNED:g}: Meta-PWR {frames_text(_median(learned, LEARNED))}, "
        f"A2C {frames_text(_median(methods['a2c'], LEARNED))}",
        f"Meta-PWTD reaches {OPTIMAL:g} in {reached.sum()} of {len(reached)} seeds "
        f"within {errors.trained / 1e6:.2f} M frames",
        *_remarks("H-PWR", first),
        *_remarks("Meta-PWR", {"a2c": second}),
    ]
    return "holds" if good else "fails", "; ".join(parts) + "."


def _remarks(name: str, orders: dict[str, Order]) -> list[str]:
    """In words, where the method of that name is not clearly faster."""
    words = {**_WORDS, "open": "cannot be compared with"}
    return [f"{name} {words[own]} {title(label)}" for label, own in orders.items() if own != "holds"]


def _at_the_centre(runs: Sequence[Run], labels: Sequence[str]) -> tuple[dict[str, Curve], str]:
    """All methods there, and that some of these are not among them, if so."""
    methods = {curve.label: curve for curve in all_curves(runs) if curve.place == CENTRAL}
    missing = [title(label) for label in labels if label not in methods]
    return methods, f"There are no runs of {', '.join(missing)} at {CENTRAL.text()}." if missing else ""


def _best_a2c(runs: Sequence[Run], own: Curve) -> tuple[Curve, str]:
    """The fastest to a door reward of 9, A2C as it was run or with a λ of the search at its rate; and its name."""
    lambda_, rate = min(learning_rule(run) for run in runs_of(runs, METHODS) if run.spec["tags"]["label"] == "a2c")
    by_lambda = {
        curves.variant[0]: curves
        for curves in all_curves(runs, SEARCH)
        if curves.label == "a2c" and curves.place == CENTRAL and np.isclose(curves.variant[1], rate)
    }
    searched = len(by_lambda) > 0
    by_lambda = {value: curves for value, curves in by_lambda.items() if not np.isclose(value, lambda_)}
    by_lambda[lambda_] = own  # of the same λ the runs with all seeds are taken
    speeds = {
        value: (_median(curves, LEARNED).estimate, -float(final_values(curves, "door_reward").mean()))
        for value, curves in by_lambda.items()
    }
    best = min(speeds, key=lambda value: speeds[value])
    return by_lambda[best], f"A2C with λ = {best:g} ({_how_chosen(by_lambda, best, searched)})"


def _how_chosen(by_lambda: dict[float, Curve], best: float, searched: bool) -> str:
    """In words; a λ that was stopped before the best one arrived may still be better than it."""
    if not searched:
        return "no other was tried at its learning rate"
    needed = min(_median(by_lambda[best], LEARNED).estimate, by_lambda[best].trained)
    stopped = {value: curves.trained for value, curves in by_lambda.items() if curves.trained < needed}
    if not stopped:
        return f"the best of {len(by_lambda)} tried"
    return (
        f"the best of {len(by_lambda) - len(stopped)} tried; {len(stopped)} more were stopped after "
        f"{max(stopped.values()) / 1e6:.2f} M frames, before it arrived"
    )


def _median(curves: Curve, threshold: float) -> Interval:
    return median_of_times(frames_to(curves, threshold))


def order_of(fast: Curve, slow: Curve, threshold: float) -> Order:
    """Whether the one is faster than the other, by the interval of the difference of their medians."""
    difference = compare_times(fast, slow, threshold)
    return "open" if difference is None else order(difference)


@claim(
    "K3",
    "The ranking is the same over nine combinations of mean and variance of the apples' rewards, and with 10 % "
    "random actions.",
    "Appendix, additional results on Key-to-Door",
)
def _order_everywhere(runs: Sequence[Run]) -> tuple[Status, str]:
    by_setting = by_place(own for own in all_curves(runs) if own.label in RANKED and len(own.seeds) >= LEAST_SEEDS)
    complete = {setting: methods for setting, methods in by_setting.items() if len(methods) == len(RANKED)}
    names = ", ".join(title(label) for label in RANKED)
    if len(complete) < LEAST_SETTINGS:
        return "not judged", (
            f"Runs of {names} with at least {LEAST_SEEDS} seeds in {LEAST_SETTINGS} settings or more are needed; "
            f"there are {len(complete)}."
        )
    found: dict[Order, list[Setting]] = {"holds": [], "tie": [], "contradicted": [], "open": []}
    for setting, methods in complete.items():
        found[_ranking(*(methods[label] for label in RANKED))].append(setting)
    judged = len(complete) - len(found["open"])
    if judged < LEAST_SETTINGS:
        return "not judged", (
            f"Meta-PWR or A2C reaches a door reward of {LEARNED:g} in {judged} of {len(complete)} settings; "
            "train longer."
        )
    parts = [
        f"In median frames to a door reward of {LEARNED:g} the order {names} holds in {len(found['holds'])} "
        f"of {judged} settings",
        f"ties in {len(found['tie'])}{_named(found['tie'])}",
        f"is contradicted in {len(found['contradicted'])}{_named(found['contradicted'])}",
    ]
    if found["open"]:
        parts.append(f"is open in {len(found['open'])} more{_named(found['open'])}")
    good = not found["contradicted"] and 2 * len(found["holds"]) > judged
    return "holds" if good else "fails", ", ".join(parts) + "."


def _ranking(handcrafted: Curve, learned: Curve, regular: Curve) -> Order:
    """How the order of all three stands in a setting: it holds where both neighbours are in order."""
    first, second = order_of(handcrafted, learned, LEARNED), order_of(learned, regular, LEARNED)
    if "contradicted" in (first, second):
        return "contradicted"
    if second == "open":
        return "open"
    return "holds" if (first, second) == ("holds", "holds") else "tie"


def _named(settings: list[Setting]) -> str:
    return f" ({'; '.join(setting.text() for setting in settings)})" if settings else ""


@claim(
    "K2",
    "RGM is third best in the door phase but does not perform well overall; TVT and A2C-RR do not learn fast.",
    "The Key-to-Door Experiments, learning curves",
)
def _other_methods(runs: Sequence[Run]) -> tuple[Status, str]:
    methods, refusal = _at_the_centre(runs, NEEDED)
    if refusal:
        return "not judged", refusal
    few = [title(label) for label in NEEDED if len(methods[label].seeds) < LEAST_SEEDS]
    if few:
        return "not judged", f"{', '.join(few)} with fewer than {LEAST_SEEDS} seeds; use more."
    frames = min(methods[label].trained for label in NEEDED)
    door = {label: value_at(methods[label], "door_reward", frames) for label in NEEDED}
    whole = {label: value_at(methods[label], "episode_return", frames) for label in NEEDED}
    clearly = {label: order(mean_difference(door["rgm"], own)) for label, own in door.items() if label != "rgm"}
    # No method but the two that should be is clearly before RGM, and none of those clearly after it.
    third = all(own != ("contradicted" if label in BEFORE_RGM else "holds") for label, own in clearly.items())
    place = sorted(door, key=lambda label: -door[label].mean()).index("rgm") + 1
    overall = mean_difference(whole["rgm"], whole["meta-pwr"])
    fast = {label: order_of(methods[label], methods["a2c"], LEARNED) for label in HEURISTIC}
    parts = [
        f"After {frames / 1e6:.2f} M frames at {CENTRAL.text()} the door rewards are "
        + ", ".join(f"{title(label)} {door[label].mean():.2f}" for label in NEEDED),
        f"RGM is {place} of {len(NEEDED)} in the door phase" + ("" if third else ", not third"),
        f"its return less Meta-PWR's is {overall.text('.2f')}",
        *(f"{title(label)} {_WORDS[own]} A2C to a door reward of {LEARNED:g}" for label, own in fast.items()),
    ]
    good = third and overall.high < 0 and "holds" not in fast.values()
    return "holds" if good else "fails", "; ".join(parts) + "."


CLAIMS = (_central_order, _other_methods, _order_everywhere)
