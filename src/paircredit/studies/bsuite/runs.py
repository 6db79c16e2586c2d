"""What is run on bsuite's credit-assignment domains: a run per method and domain, all variants and seeds in it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from paircredit.envs.bsuite.sweep import DOMAINS
from paircredit.experiments.spec import Recipe, TrainingSpec, Variant, resolve_method
from paircredit.methods.registry import make_method
from paircredit.settings import fields_of

ROLE = "bsuite"

METHODS = ("a2c", "meta-pwtd", "meta-pwr")
BASELINES = ("rgm", "a2c-rr", "meta-lambda")
"""The first two are in the paper's table; Meta-λ(s) is not, because it did as well as a fixed λ before."""
SWITCHES = (
    ("a2c", 0.025),
    ("a2c", 0.0125),
    ("meta-pwtd", 0.05),
    ("meta-pwtd", 0.0125),
    ("meta-pwr", 0.05),
    ("meta-pwr", 0.0125),
)
"""Methods with an entropy cost that is not their default: all have 0.05, the paper's own, 0.025 and 0.0125 then."""
EPISODES, CARTPOLE_EPISODES = 100_000, 50_000
"""Of every member (paper, bsuite appendix)."""
SEEDS = 3
"""Of every variant (paper, bsuite appendix)."""
ONE_OF_EACH_SCALE = (0, 4, 8, 12, 16)
"""Of catch_noise and catch_scale."""
UP_TO_TWENTY = (0, 4, 9, 13)
"""The umbrella with 1, 5, 10 and 20 steps or distractors."""
TINY = {"network.trunk": (8, 8), "network.pair_width": 8}


class Candidate(NamedTuple):
    """A method, what is changed about it, and that in words."""

    method: str
    settings: Mapping[str, Any] = {}
    change: str = ""


def training(
    candidate: Candidate,
    domain: str,
    episodes: int,
    seeds: int,
    numbers: Sequence[int] | None = None,
    env_settings: Mapping[str, Any] | None = None,
) -> TrainingSpec:
    """A method on those variants of a domain that have these numbers; episodes of every member, seeds of every variant.

    No two members have the same seed: many variants are alike, and would be the same training otherwise.
    """
    variants = DOMAINS[domain].settings
    chosen = range(len(variants)) if numbers is None else numbers
    env, (method, settings, change) = f"bsuite/{domain}", candidate
    made = resolve_method(method, "default", env, settings)
    return TrainingSpec(
        name="-".join([domain, method, *change.split()]),
        env=env,
        method=method,
        updates=-(-episodes // made.episodes),
        seeds=tuple(range(seeds)),
        env_settings=dict(env_settings or {}),
        method_settings=dict(settings),
        preset="default",
        variants=tuple(
            Variant(
                {"bsuite_id": f"{domain}/{number}"},
                variants[number],
                seeds=tuple(range(number * seeds, (number + 1) * seeds)),
            )
            for number in chosen
        ),
        tags={"role": ROLE, "label": f"{method}, {change}" if change else method, "domain": domain},
    )


@dataclasses.dataclass(frozen=True)
class BsuiteScale:
    """How much of it: seeds are per variant, episodes of every member (half as many in cartpole).

    Domains come with numbers of variants (None: all) and settings that all of them share. Methods are those of the
    experiment, or some of them.
    """

    domains: Mapping[str, tuple[Sequence[int] | None, Mapping[str, Any]]]
    episodes: int
    seeds: int
    methods: tuple[str, ...] | None = None
    method_settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)


_SCALES = {
    "smoke": BsuiteScale(
        {"catch_scale": ((8, 16), {}), "umbrella_length": ((0, 2), {"max_length": 3})},
        60,
        2,
        ("a2c", "meta-pwr", "rgm"),
        TINY,
    ),
    "short": BsuiteScale(
        {
            "catch": (range(2), {}),
            "catch_noise": (ONE_OF_EACH_SCALE, {}),
            "catch_scale": (ONE_OF_EACH_SCALE, {}),
            "umbrella_length": (UP_TO_TWENTY, {"max_length": 20}),
            "umbrella_distract": (UP_TO_TWENTY, {"max_distractors": 20}),
            "discounting_chain": (range(5), {}),
        },
        5_000,
        2,
    ),
    "paper": BsuiteScale(
        {domain: (None, {}) for domain in sorted(DOMAINS, key=lambda domain: domain == "cartpole")}, EPISODES, SEEDS
    ),
}
"""Cartpole comes last: its episodes are ten times as long as the longest others."""
_CARTPOLE_SCALES = {
    "smoke": BsuiteScale({"cartpole": ((0,), {})}, 60, 2, None, TINY),
    "short": BsuiteScale({"cartpole": (None, {})}, 10_000, SEEDS),
    "paper": BsuiteScale({"cartpole": (None, {})}, EPISODES, SEEDS),
}


def _runs(candidates: Sequence[Candidate], scale: BsuiteScale) -> list[TrainingSpec]:
    """Domain by domain."""
    return [
        training(
            candidate._replace(settings=_known(candidate.method, scale.method_settings) | dict(candidate.settings)),
            domain,
            scale.episodes * CARTPOLE_EPISODES // EPISODES if domain == "cartpole" else scale.episodes,
            scale.seeds,
            numbers,
            shared,
        )
        for domain, (numbers, shared) in scale.domains.items()
        for candidate in candidates
        if scale.methods is None or candidate.method in scale.methods
    ]


def _known(method: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Those settings whose fields the method has."""
    fields = fields_of(make_method(method))
    return {name: value for name, value in settings.items() if name.partition(".")[0] in fields}


_SWITCHED = [Candidate(method, {"inner.entropy_cost": cost}, f"entropy {cost:g}") for method, cost in SWITCHES]
EXPERIMENTS = (
    Recipe(
        "bsuite",
        "A2C, Meta-PWTD and Meta-PWR on all variants of bsuite's seven credit-assignment domains",
        _SCALES,
        partial(_runs, [Candidate(method) for method in METHODS]),
    ),
    Recipe(
        "bsuite-baselines",
        "RGM, A2C-RR and Meta-λ(s) on the same",
        _SCALES,
        partial(_runs, [Candidate(method) for method in BASELINES]),
    ),
    Recipe(
        "bsuite-cartpole",
        "the first three on cartpole alone, whose episodes are long",
        _CARTPOLE_SCALES,
        partial(_runs, [Candidate(method) for method in METHODS]),
    ),
    Recipe(
        "bsuite-switches",
        "A2C, Meta-PWTD and Meta-PWR on the same with another entropy cost",
        _SCALES,
        partial(_runs, _SWITCHED),
    ),
)
"""The second on the same domains; the third is there because cartpole is not, where the others are short; the last asks
what the weight of the entropy bonus does, which is not standardised away."""
