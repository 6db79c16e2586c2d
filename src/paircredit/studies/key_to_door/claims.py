"""The paper's claims about Key-to-Door."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from paircredit.results.curves import Curve
from paircredit.results.exhibits import LEAST_SEEDS, Claim, Order, Status
from paircredit.results.intervals import Interval, mean_difference, mean_interval, median_of_times
from paircredit.results.names import CORE, runs_of, title
from paircredit.runs.read import Run
from paircredit.studies.key_to_door.curves import (
    LEARNED,
    OPTIMAL,
    all_curves,
    compare_times,
    final_values,
    frames_text,
    frames_to,
    learning_rule,
    pick_setting,
    value_at,
)
from paircredit.studies.key_to_door.runs import CENTRAL, METHODS, RANKED, SEARCH, Setting
from paircredit.studies.key_to_door.weights import FAR, NEAR, block_means, handcrafted, learned_weights, likeness

LEAST_SETTINGS = 3
HEURISTIC = ("tvt", "a2c-rr")
"""Methods that rely on a heuristic for the key."""
NEEDED = (*CORE, "rgm", *HEURISTIC)
BEFORE_RGM = ("h-pwr", "meta-pwr")


@dataclasses.dataclass(frozen=True)
class Baseline:
    """A2C with the λ that suits it best.

    Attributes:
        curves: of it.
        name: with what a reader must know about it.
    """

    curves: Curve
    name: str


def _central_order(runs: Sequence[Run]) -> tuple[Status, str]:
    methods = {curves.label: curves for curves in all_curves(runs) if curves.place == CENTRAL}
    missing = [title(label) for label in CORE if label not in methods]
    if missing:
        return "not judged", f"There are no runs of {', '.join(missing)} at {CENTRAL.text()}."
    baseline = _best_a2c(runs, methods["a2c"])
    methods["a2c"] = baseline.curves
    names = {label: baseline.name if label == "a2c" else title(label) for label in methods}
    seeds = [len(curves.seeds) for curves in methods.values()]
    if min(seeds) < LEAST_SEEDS:
        fewest = min(methods, key=lambda label: len(methods[label].seeds))
        return "not judged", f"{names[fewest]} has {min(seeds)} seeds; at least {LEAST_SEEDS} are needed."
    handcrafted, learned, errors = methods["h-pwr"], methods["meta-pwr"], methods["meta-pwtd"]
    if not np.isfinite(_median(handcrafted, OPTIMAL).estimate):
        return "not judged", f"Not even H-PWR reaches a door reward of {OPTIMAL:g}; train longer."
    second = order_of(learned, baseline.curves, LEARNED)
    if second == "open":
        return "not judged", f"Neither Meta-PWR nor A2C reaches a door reward of {LEARNED:g}; train longer."
    first = {label: order_of(handcrafted, methods[label], OPTIMAL) for label in methods if label != "h-pwr"}
    reached = np.isfinite(frames_to(errors, OPTIMAL))
    arrives = bool(np.isfinite(_median(errors, OPTIMAL).estimate))
    good = "contradicted" not in first.values() and second == "holds" and arrives
    parts = [
        f"At {CENTRAL.text()}, {_counts(seeds)} seeds, median frames to a door reward of {OPTIMAL:g}: "
        + ", ".join(f"{names[label]} {frames_text(_median(methods[label], OPTIMAL))}" for label in methods),
        f"of {LEARNED:g}: Meta-PWR {frames_text(_median(learned, LEARNED))}, "
        f"A2C {frames_text(_median(baseline.curves, LEARNED))}",
        f"Meta-PWTD reaches {OPTIMAL:g} in {reached.sum()} of {len(reached)} seeds "
        f"within {errors.trained / 1e6:.2f} M frames",
        *_remarks("H-PWR", first),
        *_remarks("Meta-PWR", {"a2c": second}),
    ]
    return "holds" if good else "fails", "; ".join(parts) + "."


def _remarks(name: str, orders: dict[str, Order]) -> list[str]:
    """In words, where the method of that name is not clearly faster."""
    words = {"tie": "ties with", "contradicted": "is slower than", "open": "cannot be compared with"}
    return [f"{name} {words[order]} {title(label)}" for label, order in orders.items() if order != "holds"]


def _counts(seeds: list[int]) -> str:
    return f"{min(seeds)}" if min(seeds) == max(seeds) else f"{min(seeds)} to {max(seeds)}"


def _best_a2c(runs: Sequence[Run], own: Curve) -> Baseline:
    """The fastest to a door reward of 9: A2C as it was run, or with a λ of the search at the same learning rate."""
    rules = {learning_rule(run) for run in runs_of(runs, METHODS) if run.spec["tags"]["label"] == "a2c"}
    rule = min(rules)
    by_lambda = {
        curves.variant[0]: curves
        for curves in all_curves(runs, SEARCH)
        if curves.label == "a2c" and curves.place == CENTRAL and np.isclose(curves.variant[1], rule.learning_rate)
    }
    searched = len(by_lambda) > 0
    by_lambda = {value: curves for value, curves in by_lambda.items() if not np.isclose(value, rule.lambda_)}
    by_lambda[rule.lambda_] = own  # of the same λ the runs with all seeds are taken
    best = min(by_lambda, key=lambda value: _speed(by_lambda[value]))
    return Baseline(by_lambda[best], f"A2C with λ = {best:g} ({_how_chosen(by_lambda, best, searched)})")


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


def _speed(curves: Curve) -> tuple[float, float]:
    return _median(curves, LEARNED).estimate, -float(final_values(curves, "door_reward").mean())


def _median(curves: Curve, threshold: float) -> Interval:
    return median_of_times(frames_to(curves, threshold))


def order_of(fast: Curve, slow: Curve, threshold: float) -> Order:
    """Whether the one is faster than the other, by the interval of the difference of their medians."""
    difference = compare_times(fast, slow, threshold)
    if difference is None:
        return "open"
    if difference.low > 0:
        return "contradicted"
    return "holds" if difference.high < 0 else "tie"


def _order_everywhere(runs: Sequence[Run]) -> tuple[Status, str]:
    by_setting: dict[Setting, dict[str, Curve]] = {}
    for curves in all_curves(runs):
        if curves.label in RANKED and len(curves.seeds) >= LEAST_SEEDS:
            by_setting.setdefault(curves.place, {})[curves.label] = curves
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


def _weights_resemble(runs: Sequence[Run]) -> tuple[Status, str]:
    learned = {entry.setting: entry for entry in learned_weights(runs) if entry.label == "meta-pwr"}
    setting = pick_setting(list(learned))
    if setting is None:
        return "not judged", "There are no runs with learned weights of Meta-PWR."
    weights, lengths = learned[setting].weights, learned[setting].phases
    if len(weights) < LEAST_SEEDS:
        return "not judged", f"Meta-PWR has fewer than {LEAST_SEEDS} seeds at {setting.text()}; use more."
    means, by_hand = block_means(weights, lengths), block_means(handcrafted(lengths)[None], lengths)
    far = means["apple → apple, far"]
    if np.isnan(far).any():
        return "not judged", f"The apple phase has {lengths.apple} steps; more than {FAR} are needed to see a discount."
    key = mean_interval(means["key → door"] - means["key → apple"])
    apples = mean_interval(means["apple → apple, near"] - far)
    text = (
        f"At {setting.text()}, {len(weights)} seeds: key rows weigh the door {key.text('.3f')} more than apples "
        f"({means['key → door'].mean():.2f} against {means['key → apple'].mean():.2f}); in the apple phase lags up to "
        f"{NEAR} weigh {apples.text('.3f')} more than lags from {FAR} "
        f"({means['apple → apple, near'].mean():.2f} against {far.mean():.2f}). Not judged: apple rows weigh the door "
        f"{means['apple → door'].mean():.2f} (handcrafted {by_hand['apple → door'].mean():.2f}), door rows "
        f"{means['door → door'].mean():.2f} (handcrafted {by_hand['door → door'].mean():.2f}); correlation with the "
        f"handcrafted weights over all pairs {mean_interval(likeness(weights, lengths)).text('.2f')}."
    )
    return "holds" if key.low > 0 and apples.low > 0 else "fails", text


def _other_methods(runs: Sequence[Run]) -> tuple[Status, str]:
    methods = {curves.label: curves for curves in all_curves(runs) if curves.place == CENTRAL}
    missing = [title(label) for label in NEEDED if label not in methods]
    if missing:
        return "not judged", f"There are no runs of {', '.join(missing)} at {CENTRAL.text()}."
    few = [title(label) for label in NEEDED if len(methods[label].seeds) < LEAST_SEEDS]
    if few:
        return "not judged", f"{', '.join(few)} with fewer than {LEAST_SEEDS} seeds; use more."
    frames = min(methods[label].trained for label in NEEDED)
    door = {label: value_at(methods[label], "door_reward", frames) for label in NEEDED}
    whole = {label: value_at(methods[label], "episode_return", frames) for label in NEEDED}
    third = _third(door)
    overall = mean_difference(whole["rgm"], whole["meta-pwr"])
    fast = {label: order_of(methods[label], methods["a2c"], LEARNED) for label in HEURISTIC}
    parts = [
        f"After {frames / 1e6:.2f} M frames at {CENTRAL.text()} the door rewards are "
        + ", ".join(f"{title(label)} {door[label].mean():.2f}" for label in NEEDED),
        f"RGM is {_place(door)} of {len(NEEDED)} in the door phase" + ("" if third else ", not third"),
        f"its return less Meta-PWR's is {overall.text('.2f')}",
        *(f"{title(label)} {_WORDS[order]} A2C to a door reward of {LEARNED:g}" for label, order in fast.items()),
    ]
    good = third and overall.high < 0 and "holds" not in fast.values()
    return "holds" if good else "fails", "; ".join(parts) + "."


_WORDS: dict[Order, str] = {
    "holds": "is faster than",
    "tie": "ties with",
    "contradicted": "is slower than",
    "open": "has not come, and neither has",
}


def _third(door: dict[str, np.ndarray]) -> bool:
    """Whether no method but the two that should be is clearly before RGM, and none of those clearly after it."""
    ahead = [mean_difference(door["rgm"], door[label]).low <= 0 for label in BEFORE_RGM]
    others = [label for label in door if label not in (*BEFORE_RGM, "rgm")]
    after = [mean_difference(door["rgm"], door[label]).high >= 0 for label in others]
    return all(ahead) and all(after)


def _place(door: dict[str, np.ndarray]) -> int:
    return sorted(door, key=lambda label: -door[label].mean()).index("rgm") + 1


CLAIMS = (
    Claim(
        "K1",
        "In the door phase H-PWR learns best and Meta-PWR fastest after it; Meta-PWTD is slower, but reaches the "
        "optimum.",
        "The Key-to-Door Experiments, learning curves",
        _central_order,
    ),
    Claim(
        "K2",
        "RGM is third best in the door phase but does not perform well overall; TVT and A2C-RR do not learn fast.",
        "The Key-to-Door Experiments, learning curves",
        _other_methods,
    ),
    Claim(
        "K3",
        "The ranking is the same over nine combinations of mean and variance of the apples' rewards, and with 10 % "
        "random actions.",
        "Appendix, additional results on Key-to-Door",
        _order_everywhere,
    ),
    Claim(
        "K4",
        "The weights that Meta-PWR learns resemble the handcrafted ones: actions of the key phase are credited with "
        "the door and not with apples, and inside the apple phase credit is discounted steeply.",
        "The Key-to-Door Experiments, weight visualisation",
        _weights_resemble,
    ),
)
