"""What figures and claims want to know about the runs of the DAG experiment."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from paircredit.analysis.exact import expected_return
from paircredit.envs.dag import DagConfig, acting_states, layers, reachable
from paircredit.errors import PaircreditError
from paircredit.results.curves import Curve, curves, first_time
from paircredit.results.names import runs_of
from paircredit.runs.read import Run
from paircredit.studies.dag.runs import EVALUATION, RESET
from paircredit.weights import handcrafted_weights

SHARE_OF_BEST = 0.95
LABELS = ("regular", "h-pwr", "meta-pwr", "meta-pwtd")
"""Methods of the evaluation, in the order in which they are shown."""
TITLES = {"regular": "regular return", "h-pwr": "H-PWR", "meta-pwr": "Meta-PWR", "meta-pwtd": "Meta-PWTD"}


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
    """The finished run of a role at a depth and of a method, or None: only such a run has learned weights to show.

    Raises:
        PaircreditError: there are several.
    """
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


def reset_depths(runs: Sequence[Run]) -> list[int]:
    """The depths at which weights were learned, smallest first."""
    return sorted({run.spec["tags"]["depth"] for run in runs_of(runs, RESET)})


def greedy_returns(run: Run) -> np.ndarray:
    """The return of each member's final policy when it always takes its most likely action."""
    model = DagConfig(**run.spec["env_settings"]).build().model()
    logits = run.arrays()["policy_logits"]
    certain = 1e6 * (logits - logits.max(axis=-1, keepdims=True))
    tables, which = np.unique(certain, axis=0, return_inverse=True)  # many members end with the same actions
    return np.array([float(expected_return(model, jnp.asarray(table))) for table in tables])[which.reshape(-1)]


@dataclasses.dataclass(frozen=True)
class PairSets:
    """Which pairs (i, j) of states are of which kind; boolean tables [S, S], rows of acting states only.

    Attributes:
        reachable: j can follow i.
        credited: handcrafted weight 1.
        uncredited: handcrafted weight 0 though j pays a reward and can follow i.
        first_phase: entering j is a consequence of acting (layers 2 to the middle one) and pays nothing.
        second_phase: j pays a reward.
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
