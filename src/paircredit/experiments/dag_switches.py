"""What the paper leaves open, tried both ways: one switch at a time, everything else at its default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from paircredit.experiments.dag import FIRST_POLICY_SEED
from paircredit.experiments.spec import Experiment, RunSpec, TrainingSpec, pick_scale


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


def _experiment(scale: str, depth: int, outer_updates: int, seeds: int, policies: int, updates: int) -> Experiment:
    runs: list[RunSpec] = []
    policy_seeds = tuple(range(FIRST_POLICY_SEED, FIRST_POLICY_SEED + seeds * policies))
    for number, switch in enumerate(SWITCHES):
        env_settings = {"depth": depth, **switch.env_settings}
        for method in ("meta-pwr", "meta-pwtd"):
            tags = {"depth": depth, "label": method, "switch": switch.label}
            learned = TrainingSpec(
                name=f"switch{number}-reset-{method}",
                env="dag",
                env_settings=env_settings,
                method=method,
                method_settings=switch.method_settings,
                protocol="reset",
                updates=outer_updates,
                seeds=tuple(range(seeds)),
                tags={"role": "switch-reset", **tags},
            )
            evaluated = TrainingSpec(
                name=f"switch{number}-train-{method}",
                env="dag",
                env_settings=env_settings,
                method="h-pwr" if method == "meta-pwr" else method,
                updates=updates,
                seeds=policy_seeds,
                weights_from=learned.name,
                learn_weights=False,
                tags={"role": "switch-evaluation", **tags},
            )
            runs += [learned, evaluated]
    return Experiment("dag-switches", scale, tuple(runs))


_SCALES = {
    "smoke": lambda: _experiment("smoke", 4, 100, 2, 1, 250),
    "short": lambda: _experiment("short", 8, 1_000, 5, 2, 750),
    "paper": lambda: _experiment("paper", 8, 5_000, 5, 4, 750),
}


def dag_switches(scale: str) -> Experiment:
    """The DAG experiment's open choices at a scale."""
    return pick_scale("dag-switches", scale, _SCALES)
