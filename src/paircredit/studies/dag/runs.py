"""What is run on the DAG: weights are learned with resets, then fresh policies trained with them; and open choices."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

from paircredit.envs.dag import check_depth
from paircredit.experiments.spec import CreditSpec, Recipe, RunSpec, TrainingSpec

RESET, EVALUATION, MASKED = "reset", "evaluation", "masked-values"
SWITCH_RESET, SWITCH_EVALUATION = "switch-reset", "switch-evaluation"
"""Roles of runs."""
EPISODES_PER_UPDATE = 8
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


_SCALES = {
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
                tags={"role": MASKED, "depth": probe_depth},
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
            tags={"role": RESET, "depth": depth, "label": method},
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
            tags={"role": EVALUATION, "depth": depth, "label": label},
            **more,
        )

    return [
        evaluation("regular", "a2c"),
        evaluation("h-pwr", "h-pwr"),
        evaluation("meta-pwr", "h-pwr", weights_from=f"dag{depth}-reset-meta-pwr"),
        evaluation("meta-pwtd", "meta-pwtd", weights_from=f"dag{depth}-reset-meta-pwtd", learn_weights=False),
    ]


class Switch(NamedTuple):
    """One deviation from the defaults."""

    label: str
    method_settings: Mapping[str, Any]
    env_settings: Mapping[str, Any]


SWITCHES = (
    Switch("default", {}, {}),
    Switch("second moment detached", {"inner.differentiate": "numerator"}, {}),
    Switch("policies start far from uniform", {"inner.initial_scale": 1.0}, {}),
    Switch("outer λ = 0.9", {"outer.lambda_": 0.9}, {}),
    Switch("random signs", {}, {"sign_rule": "random"}),
)


class SwitchScale(NamedTuple):
    """Depth, outer updates, weight tables per method, policies per table, and their updates."""

    depth: int
    outer_updates: int
    seeds: int
    policies: int
    updates: int


_SWITCH_SCALES = {
    "smoke": SwitchScale(4, 100, 2, 1, 250),
    "short": SwitchScale(8, 1_000, 5, 2, 750),
    "paper": SwitchScale(8, 5_000, 5, 4, 750),
}


def switch_runs(scale: SwitchScale) -> list[RunSpec]:
    """Both meta-methods for every switch: weights are learned, then fresh policies are trained with them."""
    runs: list[RunSpec] = []
    policy_seeds = tuple(range(FIRST_POLICY_SEED, FIRST_POLICY_SEED + scale.seeds * scale.policies))
    for number, switch in enumerate(SWITCHES):
        env_settings = {"depth": scale.depth, **switch.env_settings}
        for method in ("meta-pwr", "meta-pwtd"):
            tags = {"depth": scale.depth, "label": method, "switch": switch.label}
            learned = TrainingSpec(
                name=f"switch{number}-reset-{method}",
                env="dag",
                env_settings=env_settings,
                method=method,
                method_settings=switch.method_settings,
                protocol="reset",
                updates=scale.outer_updates,
                seeds=tuple(range(scale.seeds)),
                tags={"role": SWITCH_RESET, **tags},
            )
            evaluated = TrainingSpec(
                name=f"switch{number}-train-{method}",
                env="dag",
                env_settings=env_settings,
                method="h-pwr" if method == "meta-pwr" else method,
                updates=scale.updates,
                seeds=policy_seeds,
                weights_from=learned.name,
                learn_weights=False,
                tags={"role": SWITCH_EVALUATION, **tags},
            )
            runs += [learned, evaluated]
    return runs


EXPERIMENTS = (
    Recipe(
        "dag",
        "weights in a DAG of decisions: heat maps, speed of learning, masked values, estimator quality",
        _SCALES,
        dag_runs,
    ),
    Recipe(
        "dag-switches",
        "what the paper leaves open about the DAG, tried one switch at a time",
        _SWITCH_SCALES,
        switch_runs,
    ),
)
