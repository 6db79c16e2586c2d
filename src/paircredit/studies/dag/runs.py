"""What is run on the DAG: weights are learned with resets, then fresh policies trained with them; and open choices."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from paircredit.envs.dag import check_depth
from paircredit.experiments.spec import CreditSpec, Recipe, RunSpec, TrainingSpec, Variant

RESET, EVALUATION, MASKED = "reset", "evaluation", "masked-values"
SWITCH_RESET, SWITCH_EVALUATION = "switch-reset", "switch-evaluation"
SEARCH_RESET, SEARCH = "search-reset", "search"
"""Roles of runs."""
LEARNING = ("meta-pwr", "meta-pwtd")
"""Methods that learn weights."""
EPISODES_PER_UPDATE = 8
FIRST_POLICY_SEED = 1000
"""Policies that are trained with learned weights have other seeds than the weights."""


@dataclasses.dataclass(frozen=True)
class DagScale:
    """How much of it: outer updates of each depth, and weight tables (`seeds`) per meta-method and depth.

    With each table, and seed of the other methods, fresh policies are trained for some episodes. The optimal value
    function is masked up to some layers (none: no probe). Masks and the comparison of estimators are at depth 8, or
    else at the first one.
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


EVALUATED: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("regular", "a2c", {}),
    ("h-pwr", "h-pwr", {}),
    ("meta-pwr", "h-pwr", {}),
    ("meta-pwtd", "meta-pwtd", {"learn_weights": False}),
)
"""What is compared: labels, the methods that they stand for, and how these are run."""


def _training(role: str, name: str, depth: int, method: str, updates: int, seeds: range, **more: Any) -> TrainingSpec:
    """A run on a DAG; further tags and settings of the environment are added to the depth."""
    tags = {"role": role, "depth": depth, **more.pop("tags", {})}
    env_settings = {"depth": depth, **more.pop("env_settings", {})}
    return TrainingSpec(name, "dag", method, updates, tuple(seeds), env_settings, tags=tags, **more)


def _policies(scale: DagScale | SwitchScale) -> range:
    """Seeds of the policies that are trained with learned weights."""
    return range(FIRST_POLICY_SEED, FIRST_POLICY_SEED + scale.seeds * scale.policies)


def dag_runs(scale: DagScale) -> Iterator[RunSpec]:
    """All runs of the DAG experiment: per depth the reset training, then the evaluation; then the probes."""
    tables, updates = range(scale.seeds), scale.episodes // EPISODES_PER_UPDATE
    for depth, outer_updates in scale.outer_updates.items():
        check_depth(depth)
        for label in LEARNING:
            more: dict[str, Any] = {"protocol": "reset", "tags": {"label": label}}
            yield _training(RESET, f"dag{depth}-reset-{label}", depth, label, outer_updates, tables, **more)
        for label, method, settings in EVALUATED:
            source = f"dag{depth}-reset-{label}" if label in LEARNING else None
            more = {"tags": {"label": label}, "weights_from": source, **settings}
            yield _training(EVALUATION, f"dag{depth}-train-{label}", depth, method, updates, _policies(scale), **more)
    depth = 8 if 8 in scale.outer_updates else min(scale.outer_updates)
    if scale.masks:
        more = {"protocol": "reset", "value_masks": scale.masks}
        yield _training(MASKED, f"dag{depth}-masked-values", depth, "meta-pwtd", scale.mask_updates, tables, **more)
    yield CreditSpec(
        name=f"dag{depth}-credit",
        env="dag",
        env_settings={"depth": depth},
        episodes=scale.credit_episodes,
        pwr_weights_from=f"dag{depth}-reset-meta-pwr",
        pwtd_weights_from=f"dag{depth}-reset-meta-pwtd",
    )


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


def switch_runs(scale: SwitchScale) -> Iterator[RunSpec]:
    """Both meta-methods for every switch: weights are learned, then fresh policies are trained with them."""
    for (number, switch), label in itertools.product(enumerate(SWITCHES), LEARNING):
        learned, evaluated = (f"switch{number}-{part}-{label}" for part in ("reset", "train"))
        method = "h-pwr" if label == "meta-pwr" else label
        more: dict[str, Any] = {"env_settings": switch.env_settings, "tags": {"label": label, "switch": switch.label}}
        own = {**more, "method_settings": switch.method_settings, "protocol": "reset"}
        yield _training(SWITCH_RESET, learned, scale.depth, label, scale.outer_updates, range(scale.seeds), **own)
        own = {**more, "weights_from": learned, "learn_weights": False}
        yield _training(SWITCH_EVALUATION, evaluated, scale.depth, method, scale.updates, _policies(scale), **own)


class SearchScale(NamedTuple):
    """What regular returns are tried with, how long the weights of Meta-PWR are learned, and how much of each.

    Attributes:
        outer_updates: per depth, of Meta-PWR's weights.
        lambdas: of A2C.
        rates: of policy and values, for every method.
        starts: deviations of the values that a table starts with.
        seeds: policies of each.
        tables: of learned weights, that the policies of Meta-PWR share.
        updates: of the policies.
    """

    outer_updates: Mapping[int, int]
    lambdas: tuple[float, ...]
    rates: tuple[float, ...]
    starts: tuple[float, ...]
    seeds: int
    tables: int
    updates: int


_LAMBDAS = (1.0, 0.95, 0.9, 0.8, 0.7, 0.5, 0.0)
_SEARCH_SCALES = {
    "smoke": SearchScale({4: 100}, (1.0, 0.5), (0.01,), (0.0, 1.0), 2, 1, 250),
    "short": SearchScale({4: 1_000, 8: 2_000}, _LAMBDAS, (0.1, 0.01), (0.0, 1.0), 5, 5, 1_250),
    "paper": SearchScale({4: 3_000, 8: 5_000, 16: 5_000}, _LAMBDAS, (0.1, 0.01, 0.001), (0.0, 1.0), 20, 5, 1_250),
}


def search_runs(scale: SearchScale) -> Iterator[RunSpec]:
    """A2C with every λ, learning rate and start of values; H-PWR and Meta-PWR with the same but for λ beside it."""
    seeds = range(FIRST_POLICY_SEED, FIRST_POLICY_SEED + scale.seeds)

    def tried(lambdas: tuple[float, ...], starts: tuple[float, ...]) -> tuple[Variant, ...]:
        return tuple(
            Variant(
                {"lambda": lambda_, "rate": rate, "start": start},
                method_settings={
                    "inner.learning_rate": rate,
                    "inner.value_learning_rate": rate,
                    "inner.value_scale": start,
                    **({"lambda_": lambda_} if len(lambdas) > 1 else {}),
                },
            )
            for start, rate, lambda_ in itertools.product(starts, scale.rates, lambdas)
        )

    for depth, outer_updates in scale.outer_updates.items():
        learned, tags = f"search{depth}-reset-meta-pwr", {"label": "meta-pwr"}
        yield _training(
            SEARCH_RESET, learned, depth, "meta-pwr", outer_updates, range(scale.tables), protocol="reset", tags=tags
        )
        for label, method, lambdas, starts, source in (
            ("regular", "a2c", scale.lambdas, scale.starts, None),
            ("h-pwr", "h-pwr", (1.0,), scale.starts, None),
            ("meta-pwr", "h-pwr", (1.0,), scale.starts, learned),
        ):
            more = {"variants": tried(lambdas, starts), "weights_from": source, "tags": {"label": label}}
            yield _training(SEARCH, f"search{depth}-{label}", depth, method, scale.updates, seeds, **more)


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
    Recipe(
        "dag-search",
        "λ, learning rate and first values of A2C in the DAG, beside H-PWR and Meta-PWR with the same rates and values",
        _SEARCH_SCALES,
        search_runs,
    ),
)
