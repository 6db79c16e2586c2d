"""The seven domains, their 146 variants with bsuite's ids (its sweep), and the episodes that bsuite logs."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any, NamedTuple

from paircredit.envs.bsuite.cartpole import CartpoleConfig
from paircredit.envs.bsuite.catch import CatchConfig
from paircredit.envs.bsuite.discounting_chain import DiscountingChainConfig
from paircredit.envs.bsuite.umbrella import UmbrellaChainConfig
from paircredit.errors import PaircreditError, refuse_unknown

BsuiteConfig = CatchConfig | UmbrellaChainConfig | CartpoleConfig | DiscountingChainConfig

COPIES = 20
"""Variants of the domains where nothing varies but the seed, which bsuite leaves to the machine."""
COPIES_PER_SCALE = 4
"""Variants with the same noise or the same scale."""
SIZES = (*range(1, 11), 12, 14, 17, 20, 25, *range(30, 101, 10))
"""Lengths of umbrella_length and numbers of distractors of umbrella_distract."""

_LATER_DECADES = (10, 12, 14, 17, 20, 25, 30, 40, 50, 60, 70, 80, 90)
"""Logged episodes of every decade after the first, times a power of ten."""


class Domain(NamedTuple):
    """One of the seven domains.

    The `config` is that of a middling variant, whose static sizes fit all variants; `settings` are what each variant
    changes, in the order of bsuite's ids.
    """

    summary: str
    config: BsuiteConfig
    settings: tuple[dict[str, Any], ...]


DOMAINS: dict[str, Domain] = {
    "catch": Domain("move a paddle below a falling ball", CatchConfig(), ({},) * COPIES),
    "catch_noise": Domain(
        "catch with noise on every reward",
        CatchConfig(noise_scale=1.0),
        tuple({"noise_scale": scale} for scale in (0.1, 0.3, 1.0, 3.0, 10.0) for _ in range(COPIES_PER_SCALE)),
    ),
    "catch_scale": Domain(
        "catch with rewards of another size",
        CatchConfig(reward_scale=1.0),
        tuple({"reward_scale": scale} for scale in (0.001, 0.03, 1.0, 30.0, 1000.0) for _ in range(COPIES_PER_SCALE)),
    ),
    "umbrella_length": Domain(
        "one decision, a noisy day of up to 100 steps, one reward for it",
        UmbrellaChainConfig(length=20, distractors=20, max_length=max(SIZES), max_distractors=20),
        tuple({"length": length} for length in SIZES),
    ),
    "umbrella_distract": Domain(
        "one decision among up to 100 distractors, paid for 20 steps later",
        UmbrellaChainConfig(length=20, distractors=20, max_length=20, max_distractors=max(SIZES)),
        tuple({"distractors": number} for number in SIZES),
    ),
    "cartpole": Domain("keep a pole upright on a cart for 1,001 steps", CartpoleConfig(), ({},) * COPIES),
    "discounting_chain": Domain(
        "choose among five chains that pay sooner or later, one a little more",
        DiscountingChainConfig(),
        tuple({"mapping_seed": seed} for seed in range(COPIES)),
    ),
}
"""The domains by bsuite's names; `bsuite/` and the name is what users type."""


def domain_sweep(domain: str) -> dict[str, BsuiteConfig]:
    """All variants of a domain: bsuite ids such as `umbrella_length/7`, and their settings.

    What they build has equal shapes, so that all of them can be members of one program.
    """
    refuse_unknown("bsuite domain", domain, DOMAINS)
    base = DOMAINS[domain].config
    variants = enumerate(DOMAINS[domain].settings)
    return {f"{domain}/{number}": dataclasses.replace(base, **settings) for number, settings in variants}


SWEEP: dict[str, BsuiteConfig] = {
    bsuite_id: config for domain in DOMAINS for bsuite_id, config in domain_sweep(domain).items()
}
"""All 146 variants by bsuite id."""


def bsuite_config(bsuite_id: str) -> BsuiteConfig:
    """The settings of a variant by its bsuite id, such as `catch_noise/3`."""
    if bsuite_id not in SWEEP:
        variants = domain_sweep(bsuite_id.partition("/")[0])
        first, *_, last = variants
        raise PaircreditError(f"There is no bsuite id {bsuite_id!r}; this domain has {first} to {last}.")
    return SWEEP[bsuite_id]


def logged_episodes(total: int) -> list[int]:
    """The episodes among the first `total` that bsuite logs, about as many in every decade, counted from 1."""
    later = (10**power * step for power in itertools.count() for step in _LATER_DECADES)
    return list(itertools.takewhile(lambda number: number <= total, itertools.chain(range(1, 10), later)))
