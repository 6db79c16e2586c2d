"""The DAG: learn weights with resets, look at them, then train fresh policies with them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from paircredit.analysis.dag_results import EPISODES_PER_UPDATE
from paircredit.envs.dag import check_depth
from paircredit.experiments.spec import CreditSpec, Experiment, RunSpec, TrainingSpec, pick_scale

FIRST_POLICY_SEED = 1000
"""Policies that are trained with learned weights have other seeds than the weights."""


@dataclasses.dataclass(frozen=True)
class DagScale:
    """How much of it.

    Attributes:
        outer_updates: per depth, of the reset training.
        seeds: weight tables per meta-method and depth.
        policies: fresh policies trained per weight table (and per seed of the other methods).
        episodes: of the evaluation.
        masks: layers up to which the optimal value function is masked, at depth 8 (empty: no probe).
        mask_updates: outer updates of the probe.
        credit_episodes: of the estimator comparison, at depth 8 or else the first depth.
    """

    outer_updates: Mapping[int, int]
    seeds: int
    policies: int
    episodes: int
    masks: tuple[int, ...]
    mask_updates: int
    credit_episodes: int


_DAG_SCALES = {
    "smoke": DagScale({4: 200}, seeds=2, policies=1, episodes=2_000, masks=(), mask_updates=0, credit_episodes=2_000),
    "short": DagScale(
        {4: 1_000, 8: 2_000, 16: 1_500},
        seeds=5,
        policies=2,
        episodes=10_000,
        masks=(0, 4, 8),
        mask_updates=1_000,
        credit_episodes=16_000,
    ),
    "paper": DagScale(
        {4: 3_000, 8: 5_000, 16: 5_000},
        seeds=5,
        policies=4,
        episodes=10_000,
        masks=(0, 4, 8),
        mask_updates=3_000,
        credit_episodes=80_000,
    ),
}


def dag_runs(scale: DagScale) -> tuple[RunSpec, ...]:
    """All runs of the DAG experiment: per depth the reset training, then the evaluation; then the probes."""
    runs: list[RunSpec] = []
    for depth in scale.outer_updates:
        check_depth(depth)
        runs += _reset_runs(depth, scale) + _evaluation_runs(depth, scale)
    probe_depth = 8 if 8 in scale.outer_updates else min(scale.outer_updates)
    if scale.masks:
        runs.append(
            TrainingSpec(
                name=f"dag{probe_depth}-masked-values",
                env="dag",
                env_settings={"depth": probe_depth},
                method="meta-pwtd",
                protocol="reset",
                updates=scale.mask_updates,
                seeds=tuple(range(scale.seeds)),
                value_masks=scale.masks,
                tags={"role": "masked-values", "depth": probe_depth},
            )
        )
    runs.append(
        CreditSpec(
            name=f"dag{probe_depth}-credit",
            env="dag",
            env_settings={"depth": probe_depth},
            episodes=scale.credit_episodes,
            pwr_weights_from=f"dag{probe_depth}-reset-meta-pwr",
            pwtd_weights_from=f"dag{probe_depth}-reset-meta-pwtd",
        )
    )
    return tuple(runs)


def _reset_runs(depth: int, scale: DagScale) -> list[RunSpec]:
    return [
        TrainingSpec(
            name=f"dag{depth}-reset-{method}",
            env="dag",
            env_settings={"depth": depth},
            method=method,
            protocol="reset",
            updates=scale.outer_updates[depth],
            seeds=tuple(range(scale.seeds)),
            tags={"role": "reset", "depth": depth, "label": method},
        )
        for method in ("meta-pwr", "meta-pwtd")
    ]


def _evaluation_runs(depth: int, scale: DagScale) -> list[RunSpec]:
    seeds = tuple(range(FIRST_POLICY_SEED, FIRST_POLICY_SEED + scale.seeds * scale.policies))

    def evaluation(label: str, method: str, **more: Any) -> RunSpec:
        return TrainingSpec(
            name=f"dag{depth}-train-{label}",
            env="dag",
            env_settings={"depth": depth},
            method=method,
            updates=scale.episodes // EPISODES_PER_UPDATE,
            seeds=seeds,
            tags={"role": "evaluation", "depth": depth, "label": label},
            **more,
        )

    return [
        evaluation("regular", "a2c"),
        evaluation("h-pwr", "h-pwr"),
        evaluation("meta-pwr", "h-pwr", weights_from=f"dag{depth}-reset-meta-pwr"),
        evaluation("meta-pwtd", "meta-pwtd", weights_from=f"dag{depth}-reset-meta-pwtd", learn_weights=False),
    ]


_SCALES = {
    name: lambda name=name, scale=scale: Experiment("dag", name, dag_runs(scale)) for name, scale in _DAG_SCALES.items()
}


def dag(scale: str) -> Experiment:
    """The DAG experiment at a scale."""
    return pick_scale("dag", scale, _SCALES)
