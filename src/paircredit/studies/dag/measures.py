"""What is measured in runs on the DAG, and the paper's claims that are judged by it."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from paircredit.analysis.exact import expected_return
from paircredit.envs.dag import DagConfig, acting_states, layers, reachable
from paircredit.errors import PaircreditError
from paircredit.results.curves import Curve, by_place, curves, first_time, runs_of
from paircredit.results.exhibits import LEAST_SEEDS, Status, claim, order, title
from paircredit.results.intervals import Interval, mean_interval, median_difference, median_ratio
from paircredit.runs.read import Run
from paircredit.studies.dag.runs import EPISODES_PER_UPDATE, EVALUATION, MASKED, RESET
from paircredit.weights import handcrafted_weights

SHARE_OF_BEST = 0.95
LABELS = ("regular", "h-pwr", "meta-pwr", "meta-pwtd")
"""Methods of the evaluation, in the order in which they are shown."""


def best_return(depth: int) -> float:
    """The return of the best policy: every second-phase transition pays +1."""
    return depth / 2


def evaluations(runs: Sequence[Run], role: str = EVALUATION) -> list[Curve]:
    """Learning curves of policies that are trained with given weights, by depth and method; the place is the depth.

    Of switches the variant is what is switched. Points are what the policy was worth before an update.
    """

    def who(run: Run, _: tuple[object, ...]) -> tuple[int, tuple[str, ...]]:
        tags = run.spec["tags"]
        return tags["depth"], (tags["switch"],) if "switch" in tags else ()

    found = curves(runs, role, who, where="at depth {}".format)
    return sorted(found, key=lambda curve: (curve.place, LABELS.index(curve.label), curve.variant))


def episodes(curve: Curve) -> np.ndarray:
    """Before every point of a curve, [P]."""
    return curve.edges["episodes"][: curve.values["expected_return"].shape[1]].astype(np.int64)


def evaluation_times(curve: Curve) -> np.ndarray:
    """Episodes until the policy's expected return is 95 % of the best, of every member."""
    threshold = SHARE_OF_BEST * best_return(curve.place)
    return first_time(episodes(curve), curve.values["expected_return"], threshold)


def sampled_times(curve: Curve, window: int = 10) -> np.ndarray:
    """The same from training batches alone: the first time that the mean of the last `window` batches is at 95 %."""
    sums = np.cumsum(np.pad(curve.values["episode_return"], ((0, 0), (1, 0))), axis=1)
    means = (sums[:, window:] - sums[:, :-window]) / window
    return first_time(episodes(curve)[window - 1 :], means, SHARE_OF_BEST * best_return(curve.place))


def by_table(curve: Curve, members: np.ndarray) -> np.ndarray:
    """Members in clusters [tables, policies] that share a table of learned weights; as they are where none do."""
    labels = curve.marks.get("weights")
    if labels is None:
        return members
    return members[np.argsort(labels, kind="stable")].reshape(len(np.unique(labels)), -1)


def finished_run(runs: Sequence[Run], role: str, depth: int | None = None, label: str | None = None) -> Run | None:
    """The one finished run of a role at a depth and of a method, or None: only it has learned weights to show."""
    wanted = {"depth": depth, "label": label}
    found = [
        run
        for run in runs_of(runs, role)
        if run.finished and all(value is None or run.spec["tags"].get(key) == value for key, value in wanted.items())
    ]
    if len(found) > 1:
        raise PaircreditError(
            f"Both {found[0].path} and {found[1].path} hold the same part of the experiment; name a folder with one."
        )
    return found[0] if found else None


def greedy_returns(run: Run) -> np.ndarray:
    """The return of each member's final policy when it always takes its most likely action."""
    model = DagConfig(**run.spec["env_settings"]).build().model()
    logits = run.arrays()["policy_logits"]
    certain = 1e6 * (logits - logits.max(axis=-1, keepdims=True))
    tables, which = np.unique(certain, axis=0, return_inverse=True)  # many members end with the same actions
    return np.array([float(expected_return(model, jnp.asarray(table))) for table in tables])[which.reshape(-1)]


class PairSets(NamedTuple):
    """Which pairs (i, j) of states are of which kind; boolean tables [S, S], rows of acting states only.

    In all, j can follow i. The handcrafted weight is 1 (credited), or 0 though j pays a reward (uncredited). Entering j
    pays nothing in the first phase (layers 2 to the middle one), but is a consequence of acting; in the second it pays.
    """

    reachable: np.ndarray
    credited: np.ndarray
    uncredited: np.ndarray
    first_phase: np.ndarray
    second_phase: np.ndarray


@functools.cache
def pair_sets(depth: int) -> PairSets:
    """The kinds of pairs at a depth."""
    layer = layers(depth)
    acting = np.zeros(len(layer), dtype=bool)
    acting[acting_states(depth)] = True
    within = reachable(depth) & acting[:, None]
    pays = (layer > depth // 2 + 1)[None, :]
    handcrafted = np.asarray(handcrafted_weights(DagConfig(depth).build()).table) > 0
    return PairSets(
        reachable=within,
        credited=within & handcrafted,
        uncredited=within & pays & ~handcrafted,
        first_phase=within & ~pays,
        second_phase=within & pays,
    )


def next_transition(depth: int) -> np.ndarray:
    """Pairs of an acting state and its successor: the first-phase TD error that the action itself causes."""
    layer = layers(depth)
    return pair_sets(depth).reachable & (layer[None, :] == layer[:, None] + 1)


def mean_weight(weights: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """The mean weight over a set of pairs, for each table of [N, S, S]."""
    return weights[:, pairs].mean(axis=1)


START_WEIGHT = 0.5
START_TOLERANCE = 0.01
"""Weights start within ±0.0025 of ½; within this of ½ they have not moved."""
FULL_EPISODES = 10_000


def _reset_weights(runs: Sequence[Run], label: str) -> dict[int, np.ndarray]:
    depths = sorted({run.spec["tags"]["depth"] for run in runs_of(runs, RESET)})
    found = {depth: finished_run(runs, RESET, depth, label) for depth in depths}
    return {depth: run.arrays()["weights"] for depth, run in found.items() if run is not None}


@claim(
    "D1",
    "Meta-PWR raises weights where the handcrafted weight is 1 and lowers them where it is 0.",
    "Learned Pairwise Weights, weight visualisation",
)
def _meta_pwr_weights(runs: Sequence[Run]) -> tuple[Status, str]:
    tables = _reset_weights(runs, "meta-pwr")
    if not tables:
        return "not judged", "There are no reset runs of Meta-PWR."
    found = {depth: _looks_like_rewards(weights, depth) for depth, weights in tables.items()}
    text = "; ".join(f"depth {depth}: {numbers}" for depth, (_, numbers) in found.items())
    return "holds" if all(good for good, _ in found.values()) else "fails", f"Mean weight {text} (start: 0.50)."


def _interval(weights: np.ndarray, pairs: np.ndarray) -> Interval:
    return mean_interval(mean_weight(weights, pairs))


@claim(
    "D2",
    "Learned weights need no more episodes to 95 % of the best return than handcrafted ones, these fewer than the "
    "regular return, and the gap grows with the depth.",
    "Learned Pairwise Weights, evaluation",
)
def _episodes_to_learn(runs: Sequence[Run]) -> tuple[Status, str]:
    labels = ("regular", "h-pwr", "meta-pwr")
    by_depth = by_place(curve for curve in evaluations(runs) if curve.label in labels)
    times = {
        depth: {label: by_table(curve, evaluation_times(curve)) for label, curve in methods.items()}
        for depth, methods in by_depth.items()
        if len(methods) == len(labels)
    }
    if len(times) < 2:
        return "not judged", "Evaluation runs of all methods at two depths or more are needed."
    if any(np.isinf(x).any() for by_label in times.values() for x in by_label.values()):
        return "not judged", "Some members never reached 95 % of the best return; train longer."
    if min(x.size for by_label in times.values() for x in by_label.values()) < LEAST_SEEDS:
        return "not judged", f"Fewer than {LEAST_SEEDS} members per method; use more seeds."
    parts, good = [], True
    for depth, by_label in times.items():
        learned = median_difference(by_label["meta-pwr"], by_label["h-pwr"])
        by_hand = order(median_difference(by_label["h-pwr"], by_label["regular"]))
        good &= "contradicted" not in (order(learned), by_hand)
        if depth == max(times):
            good &= learned.estimate <= 0 and by_hand == "holds"
        tie = "" if by_hand == "holds" else " (handcrafted and regular tie)"
        medians = ", ".join(f"{title(label)} {np.median(by_label[label]):.0f}" for label in labels)
        parts.append(f"depth {depth}: {medians}{tie}")
    ratios = [median_ratio(by_label["regular"], by_label["meta-pwr"]) for by_label in times.values()]
    grows = all(later.estimate > earlier.estimate for earlier, later in itertools.pairwise(ratios))
    text = "; ".join(parts) + "; regular/Meta-PWR " + " → ".join(ratio.text(".2f") for ratio in ratios) + "."
    return "holds" if good and grows else "fails", "Median episodes to 95 %: " + text


@claim(
    "D3",
    "Meta-PWTD places high weight on transitions of the first phase, which pay nothing.",
    "Learned Pairwise Weights, weight visualisation",
)
def _meta_pwtd_weights(runs: Sequence[Run]) -> tuple[Status, str]:
    tables = _reset_weights(runs, "meta-pwtd")
    rewards = _reset_weights(runs, "meta-pwr")
    if not tables:
        return "not judged", "There are no reset runs of Meta-PWTD."
    good, parts = True, []
    for depth, weights in tables.items():
        next_step = next_transition(depth)
        own = _interval(weights, next_step)
        text = f"depth {depth}: {own.text('.2f')} on the transition an action makes"
        good &= own.low > START_WEIGHT
        if depth in rewards:
            text += f" (Meta-PWR: {mean_weight(rewards[depth], next_step).mean():.2f})"
        pairs = pair_sets(depth)
        text += (
            f", {_interval(weights, pairs.first_phase).text('.2f')} on all of the first phase, "
            f"{_interval(weights, pairs.second_phase).text('.2f')} on the second"
        )
        parts.append(text)
    return "holds" if good else "fails", "Mean Meta-PWTD weight, " + "; ".join(parts) + "."


@claim(
    "D4",
    "With the optimal value function masked to depth 0 or 4 no weight goes after the middle layer; masked to "
    "depth 4 everything before it stays at its start; masked to depth 8 the weights look like those of Meta-PWR.",
    "Appendix, TD-error weights with different value functions",
)
def _masked_values(runs: Sequence[Run]) -> tuple[Status, str]:
    run = finished_run(runs, MASKED)
    if run is None:
        return "not judged", "There is no run of the masked-value probe."
    depth = run.spec["tags"]["depth"]
    arrays, pairs, layer = run.arrays(), pair_sets(depth), layers(depth)
    by_mask = {int(mask): arrays["weights"][arrays["label_mask"] == mask] for mask in np.unique(arrays["label_mask"])}
    middle = depth // 2
    before = pairs.reachable & (layer <= middle)[None, :]
    good, parts = True, []
    for mask, still, where in (
        (0, pairs.second_phase, "after the middle layer the weights moved"),
        (middle, pairs.second_phase, "after the middle layer the weights moved"),
        (middle, before, "before the middle layer"),
    ):
        if mask in by_mask:
            moved = float(np.abs(by_mask[mask][:, still] - START_WEIGHT).max())
            good &= moved <= START_TOLERANCE
            parts.append(f"mask {mask}: {where} by at most {moved:.3f}")
    if depth in by_mask:
        alike, text = _looks_like_rewards(by_mask[depth], depth)
        good &= alike
        parts.append(f"mask {depth}: {text}")
    reference = finished_run(runs, RESET, depth, "meta-pwr")
    if reference is not None and depth in by_mask:
        ours = by_mask[depth].mean(axis=0)[pairs.second_phase]
        theirs = reference.arrays()["weights"].mean(axis=0)[pairs.second_phase]
        correlation = float(np.corrcoef(ours, theirs)[0, 1])
        good &= correlation > 0.9
        parts.append(f"mask {depth}: correlation with the weights of Meta-PWR {correlation:.3f}")
    return "holds" if good else "fails", "Weights, " + "; ".join(parts) + "."


def _looks_like_rewards(weights: np.ndarray, depth: int) -> tuple[bool, str]:
    """Whether weights rose where the handcrafted one is 1 and fell where it is 0, and the numbers."""
    pairs = pair_sets(depth)
    ones, zeros = _interval(weights, pairs.credited), _interval(weights, pairs.uncredited)
    text = f"{ones.text('.2f')} where handcrafted is 1, {zeros.text('.2f')} where it is 0"
    return ones.low > START_WEIGHT and zeros.high < START_WEIGHT, text


@claim("D5", "Every method reaches the optimum within 10,000 episodes.", "Appendix, DAG learning curves")
def _optimum(runs: Sequence[Run]) -> tuple[Status, str]:
    """The best action is the likeliest one in every state met, and the policy is above the paper's 95 % mark."""
    expected, greedy = {}, {}
    for run in runs_of(runs, EVALUATION):
        if run.spec["updates"] * EPISODES_PER_UPDATE < FULL_EPISODES:
            continue
        for curve in evaluations([run]):
            best, within = best_return(curve.place), episodes(curve) <= FULL_EPISODES
            expected[run.name] = curve.values["expected_return"][:, within].max(axis=1) / best
            greedy[run.name] = greedy_returns(run) / best
    if not expected:
        return "not judged", f"No method was trained for {FULL_EPISODES:,} episodes."
    worst = min(expected, key=lambda name: float(expected[name].min()))
    lowest = float(expected[worst].min())
    members = sum(len(x) for x in expected.values())
    optimal = sum(int((x > 1 - 1e-6).sum()) for x in greedy.values())
    return "holds" if lowest >= SHARE_OF_BEST and optimal == members else "fails", (
        f"In {optimal} of {members} members of {len(expected)} runs the most likely actions are optimal after "
        f"{FULL_EPISODES:,} episodes; the lowest expected return reached is {100 * lowest:.1f} % of the best ({worst})."
    )


CLAIMS = (_meta_pwr_weights, _episodes_to_learn, _meta_pwtd_weights, _masked_values, _optimum)
