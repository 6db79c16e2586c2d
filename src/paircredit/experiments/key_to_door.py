"""Key-to-Door: the paper's central experiment, its searches, and what it leaves open, as data."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from paircredit.envs.registry import make_environment
from paircredit.experiments.spec import Experiment, TrainingSpec, pick_scale
from paircredit.methods.presets import preset_environment

EPISODES = 16
"""Episodes per update (paper, KtD appendix)."""
METHODS = ("a2c", "h-pwr", "meta-pwr", "meta-pwtd")
MEANS, VARIANCES, SLIPS = (1.0, 5.0, 10.0), (0.0, 25.0, 100.0), (0.0, 0.1)
CENTRAL, HARD = (5.0, 25.0, 0.0), (10.0, 100.0, 0.0)
"""(μ, σ², slip): where the paper tuned all methods, and the noisiest of its settings."""
LAMBDAS = (1.0, 0.99, 0.98, 0.95, 0.9, 0.8, 0.5, 0.0)
LEARNING_RATES = (1e-3, 2e-4, 5e-5, 1e-5)
"""The paper's search for A2C."""
EASY_TO_SEE = preset_environment("small", "key-to-door")
SHORTENED = {"key_steps": 6, "apple_steps": 8, "door_steps": 6, **EASY_TO_SEE}
"""For runs that only show that everything works."""

Setting = tuple[float, float, float]


def updates_for(frames: int, env_settings: Mapping[str, Any]) -> int:
    """Updates that use up so many environment steps per member."""
    steps = make_environment("key-to-door", **env_settings).spec.horizon
    return max(1, round(frames / (EPISODES * steps)))


def setting_variant(setting: Setting, env_settings: Mapping[str, Any]) -> dict[str, Any]:
    """A variant of the environment with its labels."""
    names = dict(zip(("mean", "variance", "slip"), setting, strict=True))
    return {"labels": names, "env_settings": {**env_settings, **names}}


def training(
    name: str,
    label: str,
    settings: Sequence[Setting],
    updates: int,
    seeds: int,
    *,
    preset: str = "default",
    role: str = "key-to-door",
    env_settings: Mapping[str, Any] | None = None,
    method_settings: Mapping[str, Any] | None = None,
    variants: Sequence[dict[str, Any]] = (),
) -> TrainingSpec:
    """One method on several settings, all in one program.

    Args:
        name: of the run.
        label: name of the method.
        settings: (μ, σ², slip) of the members.
        updates: of each member.
        seeds: members per setting and variant.
        preset: of the method.
        role: what figures look for.
        env_settings: what all settings share.
        method_settings: what all members share.
        variants: labels and settings of the method or the environment, each tried on every setting.
    """
    members = [
        {
            "labels": {**base["labels"], **variant.get("labels", {})},
            "env_settings": {**base["env_settings"], **variant.get("env_settings", {})},
            "method_settings": variant.get("method_settings", {}),
        }
        for base in (setting_variant(setting, env_settings or {}) for setting in settings)
        for variant in (variants or [{}])
    ]
    return TrainingSpec(
        name=name,
        env="key-to-door",
        method=label,
        updates=updates,
        seeds=tuple(range(seeds)),
        env_settings=dict(env_settings or {}),
        method_settings=dict(method_settings or {}),
        preset=preset,
        variants=tuple(members),
        tags={"role": role, "label": label},
    )


@dataclasses.dataclass(frozen=True)
class KeyToDoorScale:
    """How much of it.

    Attributes:
        settings: (μ, σ², slip) for all methods.
        frames: environment steps per member.
        seeds: members per setting.
        preset: of the methods.
        env_settings: what all settings share.
    """

    settings: tuple[Setting, ...]
    frames: int
    seeds: int
    preset: str = "default"
    env_settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)


_SCALES = {
    "smoke": KeyToDoorScale((CENTRAL, (5.0, 25.0, 0.1)), 4 * EPISODES * 20, 2, "small", SHORTENED),
    "short": KeyToDoorScale((CENTRAL,), 2_000_000, 3, "small", EASY_TO_SEE),
    "paper": KeyToDoorScale(
        tuple((mean, variance, slip) for slip in SLIPS for mean in MEANS for variance in VARIANCES), 50_000_000, 10
    ),
}


def key_to_door(scale: str) -> Experiment:
    """All methods on all settings at a scale: seconds, minutes on a laptop, hours on a GPU."""

    def build(name: str, chosen: KeyToDoorScale) -> Experiment:
        runs = [
            training(
                f"key-to-door-{method}",
                method,
                chosen.settings,
                updates_for(chosen.frames, chosen.env_settings),
                chosen.seeds,
                preset=chosen.preset,
                env_settings=chosen.env_settings,
            )
            for method in METHODS
        ]
        return Experiment("key-to-door", name, tuple(runs))

    return pick_scale("key-to-door", scale, {name: partial(build, name, chosen) for name, chosen in _SCALES.items()})


_CENTRAL_FRAMES = {"a2c": 20_000_000, "h-pwr": 12_000_000, "meta-pwr": 19_200_000, "meta-pwtd": 20_000_000}
"""Enough for a curve to be flat, or 20 million."""


def _one_setting(experiment: str, setting: Setting, methods: Sequence[str], scale: str) -> Experiment:
    def build(name: str, factor: float, seeds: int, **more: Any) -> Experiment:
        runs = [
            training(
                f"{experiment.removeprefix('key-to-door-')}-{method}",
                method,
                [setting],
                updates_for(round(factor * _CENTRAL_FRAMES[method]), more.get("env_settings", {})),
                seeds,
                **more,
            )
            for method in methods
        ]
        return Experiment(experiment, name, tuple(runs))

    return pick_scale(
        experiment,
        scale,
        {
            "smoke": lambda: build("smoke", 1e-4, 2, preset="small", env_settings=SHORTENED),
            "short": lambda: build("short", 0.5, 5),
            "paper": lambda: build("paper", 1.0, 10),
        },
    )


def central(scale: str) -> Experiment:
    """All methods on the setting that the paper tuned on."""
    return _one_setting("key-to-door-central", CENTRAL, METHODS, scale)


def hard(scale: str) -> Experiment:
    """A2C and Meta-PWR on the noisiest setting."""
    return _one_setting("key-to-door-hard", HARD, ("a2c", "meta-pwr"), scale)


RANKED = ("a2c", "h-pwr", "meta-pwr")
"""What the paper's ranking is about."""


def everywhere(scale: str) -> Experiment:
    """Whether the order of methods is the same in all settings: a run per method, and one more where actions slip."""

    def build(
        name: str, settings: Sequence[tuple[float, float]], slips: Sequence[float], frames: int, seeds: int, **more: Any
    ) -> Experiment:
        runs = [
            training(
                f"settings-{method}" if slip == 0 else f"settings-slips-{method}",
                method,
                [(mean, variance, slip) for mean, variance in settings],
                updates_for(frames, more.get("env_settings", {})),
                seeds,
                **more,
            )
            for slip in slips
            for method in RANKED
        ]
        return Experiment("key-to-door-settings", name, tuple(runs))

    nine = [(mean, variance) for mean in MEANS for variance in VARIANCES]
    small: dict[str, Any] = {"preset": "small", "env_settings": SHORTENED}
    return pick_scale(
        "key-to-door-settings",
        scale,
        {
            "smoke": lambda: build("smoke", nine[:2], SLIPS, 4 * EPISODES * 20, 2, **small),
            "short": lambda: build("short", nine, SLIPS[:1], 12_000_000, 5),
            "paper": lambda: build("paper", nine, SLIPS, 19_200_000, 10),
        },
    )


def search(scale: str) -> Experiment:
    """A2C's λ and learning rate on the central setting; `short` keeps to the learning rate that the paper chose."""

    def build(
        name: str, lambdas: Sequence[float], rates: Sequence[float], seeds: int, frames: int, **more: Any
    ) -> Experiment:
        variants = [
            {
                "labels": {"lambda": lambda_, "learning_rate": rate},
                "method_settings": {
                    "lambda_": lambda_,
                    "inner.learning_rate": rate,
                    "inner.value_learning_rate": rate,
                },
            }
            for rate in rates
            for lambda_ in lambdas
        ]
        run = training(
            "search-a2c",
            "a2c",
            [CENTRAL],
            updates_for(frames, more.get("env_settings", {})),
            seeds,
            role="key-to-door-search",
            variants=variants,
            **more,
        )
        return Experiment("key-to-door-search", name, (run,))

    return pick_scale(
        "key-to-door-search",
        scale,
        {
            "smoke": lambda: build("smoke", (1.0, 0.5), (2e-4,), 1, 1_280, preset="small", env_settings=SHORTENED),
            "short": lambda: build("short", LAMBDAS, (2e-4,), 5, _CENTRAL_FRAMES["a2c"]),
            "paper": lambda: build("paper", LAMBDAS, LEARNING_RATES, 3, 50_000_000),
        },
    )


_SWITCHES: tuple[tuple[dict[str, Any], dict[str, dict[str, Any]]], ...] = (
    (
        {},
        {
            "default": {},
            "outer λ = 1": {"outer.lambda_": 1.0},
            "outer λ = 0.5": {"outer.lambda_": 0.5},
            "outer learning rate 2e-5": {"outer.learning_rate": 2e-5},
            "outer learning rate 3e-4": {"outer.learning_rate": 3e-4},
            "dark palette": {"env.palette": "dark"},
        },
    ),
    ({"network.lag": "scalar"}, {"scalar lag": {}}),
    ({"network.lag": "one-hot"}, {"one-hot lag": {}}),
    ({"inner.differentiate": "numerator"}, {"second moment detached": {}}),
    ({"inner.differentiate_statistics": True}, {"statistics differentiated": {}}),
    ({"network.precision": "float32"}, {"float32": {}}),
)
"""Settings that need a program of their own, and the switches that are tried within it."""


def switches(scale: str) -> Experiment:
    """What the paper leaves open about Meta-PWR in Key-to-Door, one switch at a time."""

    def build(name: str, seeds: int, frames: int, **more: Any) -> Experiment:
        updates = updates_for(frames, more.get("env_settings", {}))

        def variant(label: str, changed: Mapping[str, Any]) -> dict[str, Any]:
            env = {name.removeprefix("env."): value for name, value in changed.items() if name.startswith("env.")}
            method = {name: value for name, value in changed.items() if not name.startswith("env.")}
            return {"labels": {"switch": label}, "env_settings": env, "method_settings": method}

        runs = [
            training(
                f"switch{number}-meta-pwr",
                "meta-pwr",
                [CENTRAL],
                updates,
                seeds,
                role="key-to-door-switches",
                method_settings=static,
                variants=[variant(label, changed) for label, changed in traced.items()],
                **more,
            )
            for number, (static, traced) in enumerate(_SWITCHES)
        ]
        return Experiment("key-to-door-switches", name, tuple(runs))

    return pick_scale(
        "key-to-door-switches",
        scale,
        {
            "smoke": lambda: build("smoke", 1, 1_280, preset="small", env_settings=SHORTENED),
            "short": lambda: build("short", 5, 9_600_000),
            "paper": lambda: build("paper", 10, 20_000_000),
        },
    )
