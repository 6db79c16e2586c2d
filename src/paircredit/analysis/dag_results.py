"""What figures and claims want to know about the runs of the DAG experiment."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from paircredit.analysis.exact import expected_return
from paircredit.envs.dag import DagConfig, acting_states, layers, reachable
from paircredit.errors import PaircreditError
from paircredit.runs.query import query_metrics
from paircredit.runs.read import Run
from paircredit.weights import handcrafted_weights

SHARE_OF_BEST = 0.95
EPISODES_PER_UPDATE = 8
LABELS = ("regular", "h-pwr", "meta-pwr", "meta-pwtd")
"""Methods of the evaluation, in the order in which they are shown."""
TITLES = {"regular": "regular return", "h-pwr": "H-PWR", "meta-pwr": "Meta-PWR", "meta-pwtd": "Meta-PWTD"}


def best_return(depth: int) -> float:
    """The return of the best policy: every second-phase transition pays +1."""
    return depth / 2


def pick(runs: Sequence[Run], role: str, depth: int | None = None, label: str | None = None) -> Run | None:
    """The run with these tags, or None.

    Raises:
        PaircreditError: there are several.
    """
    wanted = {"role": role, "depth": depth, "label": label}
    found = [
        run
        for run in runs
        if run.kind == "training"
        and all(value is None or run.spec["tags"].get(key) == value for key, value in wanted.items())
    ]
    if len(found) > 1:
        raise PaircreditError(
            f"Both {found[0].path} and {found[1].path} hold the same part of the experiment; name a folder with one."
        )
    return found[0] if found else None


def depths(runs: Sequence[Run], role: str) -> list[int]:
    """The depths for which there are runs of this role, smallest first."""
    return sorted({run.spec["tags"]["depth"] for run in runs if run.spec.get("tags", {}).get("role") == role})


@dataclasses.dataclass(frozen=True)
class Curves:
    """Learning curves of one method at one depth.

    Attributes:
        episodes: x, [U].
        expected: exact expected return of the policy, [M, U].
        sampled: mean return of the training batch, [M, U].
    """

    episodes: np.ndarray
    expected: np.ndarray
    sampled: np.ndarray


def learning_curves(run: Run) -> Curves:
    """The curves of an evaluation run."""
    rows = query_metrics(
        [run], "SELECT member, episodes, expected_return, episode_return FROM metrics ORDER BY member, episodes"
    )
    members = int(rows["member"].max()) + 1
    return Curves(
        episodes=rows["episodes"].reshape(members, -1)[0],
        expected=rows["expected_return"].reshape(members, -1),
        sampled=rows["episode_return"].reshape(members, -1),
    )


def episodes_to_threshold(episodes: np.ndarray, returns: np.ndarray, threshold: float) -> np.ndarray:
    """For every member the first number of episodes at which its return is at least the threshold; inf if never.

    Args:
        episodes: [U].
        returns: [M, U].
        threshold: what counts as learned.
    """
    reached = returns >= threshold
    return np.where(reached.any(axis=1), episodes[reached.argmax(axis=1)].astype(float), np.inf)


def evaluation_times(run: Run, share: float = SHARE_OF_BEST) -> np.ndarray:
    """Episodes until the policy's expected return is 95 % of the best, per member."""
    curves = learning_curves(run)
    return episodes_to_threshold(curves.episodes, curves.expected, share * best_return(run.spec["tags"]["depth"]))


def sampled_times(run: Run, window: int = 10, share: float = SHARE_OF_BEST) -> np.ndarray:
    """The same from training batches alone: the first time that the mean of the last `window` batches is at 95 %."""
    curves = learning_curves(run)
    sums = np.cumsum(np.pad(curves.sampled, ((0, 0), (1, 0))), axis=1)
    means = (sums[:, window:] - sums[:, :-window]) / window
    return episodes_to_threshold(curves.episodes[window - 1 :], means, share * best_return(run.spec["tags"]["depth"]))


def by_table(run: Run, members: np.ndarray) -> np.ndarray:
    """Members in clusters [tables, policies] that share a table of learned weights; as they are where none do."""
    if run.spec.get("weights_from") is None:
        return members
    labels = run.arrays()["label_weights"]
    return members[np.argsort(labels, kind="stable")].reshape(len(np.unique(labels)), -1)


def greedy_returns(run: Run) -> np.ndarray:
    """The return of each member's final policy when it always takes its most likely action."""
    model = DagConfig(**run.spec["env_settings"]).build().model()
    logits = run.arrays()["policy_logits"]
    certain = 1e6 * (logits - logits.max(axis=-1, keepdims=True))
    return np.array([float(expected_return(model, jnp.asarray(table))) for table in certain])


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
