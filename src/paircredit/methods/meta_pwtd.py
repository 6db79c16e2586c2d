"""Meta-PWTD: learned pairwise weighted TD errors."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Key

from paircredit.envs.protocol import Environment
from paircredit.estimators import pwtd, td_errors
from paircredit.methods.agent import ActorCritic
from paircredit.methods.rule import Credit, Experience, Needs, within_episodes
from paircredit.weights import PairWeights, weights_for


class MetaPWTD(eqx.Module):
    """Ψ_t = Σ_k f_η(S_t, S_k, k−t) δ_k, the TD errors δ those of the regular return."""

    needs: ClassVar[Needs] = Needs(sharing=True, features=True)

    def weights(self, agent: ActorCritic, key: Key[Array, ""], env: Environment) -> Any:
        """Weights near ½: a table over pairs of states, or a network that sees the TD errors."""
        return weights_for(key, env.spec, agent.network, agent.weight_scale, sees_signal=True)

    def credit(self, weights: PairWeights, experience: Experience) -> Credit:
        """There is no baseline: TD errors have it in them."""
        seen, values, discounts = experience.trajectory, experience.values, experience.discounts
        errors = td_errors(seen.rewards, values, discounts, seen.valid)
        pairs = experience.pairs(weights, errors)
        return Credit(
            advantages=pwtd(pairs, seen.rewards, values, discounts, seen.valid, seen.episode),
            weights=within_episodes(pairs, seen),
            signal=errors,
            baseline=jnp.zeros_like(errors),
            regular_return=experience.regular_returns,
        )
