"""Weighted rewards and TD errors: a weight per pair in H-PWR, Meta-PWR and Meta-PWTD, and one per reward in RGM.

The weights of H-PWR are given, those of the others learn by metagradient. RGM is from Wang et al. 2019.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from paircredit.envs.protocol import Discrete, Environment
from paircredit.estimators import discounted_returns, pairwise_sum, pwr, pwtd, td_errors
from paircredit.estimators.shapes import expect_shape
from paircredit.methods.rule import Credit, Experience, Needs, within_episodes
from paircredit.networks.state_functions import num_states
from paircredit.settings import setting
from paircredit.types import Trajectory
from paircredit.weights import FixedPairs, FixedTable, PairWeights, handcrafted_weights, weights_for
from paircredit.weights.return_generator import Bound, ReturnGenerator, TransformerSpec

if TYPE_CHECKING:
    from paircredit.methods.agent import ActorCritic

_TO_THE_END = "its weights reach to the end of the episode and nothing stands in for rewards after a cut"


class HPWR(eqx.Module):
    """Ψ_t = Σ_k w(S_t, S_k) R_k − v(S_t) with fixed weights w, where v predicts the weighted return."""

    table: Float[Array, "S S"] | None = setting(
        None, "The weights, over pairs of states or of times; left out, the handcrafted ones of the environment"
    )

    needs: ClassVar[Needs] = Needs(values="weighted", whole_episodes=_TO_THE_END)

    def weights(self, agent: ActorCritic, key: Key[Array, ""], env: Environment) -> Any:
        """The table, or what is handcrafted for the environment."""
        if self.table is None:
            return handcrafted_weights(env)
        tabular = isinstance(env.spec.observation, Discrete)
        size = num_states(env.spec) if tabular else env.spec.horizon
        expect_shape(f"The table of weights for {env.spec.name}", self.table, (size, size))
        return FixedTable(self.table) if tabular else FixedPairs(self.table)

    def credit(self, weights: PairWeights, experience: Experience) -> Credit:
        """As in Meta-PWR, but there is no regular return and nothing evaluates the weights."""
        return weighted_rewards(weights, experience)


class MetaPWR(eqx.Module):
    """Ψ_t = Σ_k f_η(S_t, S_k, k−t) R_k − v(S_t), where v predicts the weighted return."""

    needs: ClassVar[Needs] = Needs(values="both", features=True, whole_episodes=_TO_THE_END)

    def weights(self, agent: ActorCritic, key: Key[Array, ""], env: Environment) -> Any:
        """Weights near ½: a table over pairs of states, or a network that does not see the rewards."""
        return weights_for(key, env.spec, agent.network, agent.weight_scale, sees_signal=False)

    def credit(self, weights: PairWeights, experience: Experience) -> Credit:
        """`value` predicts the regular return and evaluates the weights; `weighted_value` is the baseline."""
        return weighted_rewards(weights, experience)


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


class RGM(eqx.Module):
    """Ψ_t = Σ_{k>t} β_k R_k − v_w(S_t), where v_w predicts the generated return; γ is for the regular return alone."""

    transformer: TransformerSpec = setting(TransformerSpec(), "Sizes of the Transformer that makes the weights")
    bound: Bound = setting(
        "linear", "β as the last layer gives it, or 2·sigmoid of it", "the paper names a linear layer and no bound"
    )

    needs: ClassVar[Needs] = Needs(
        values="both",
        whole_episodes="its weights are made of the whole episode and nothing stands in for rewards after a cut",
    )

    def weights(self, agent: ActorCritic, key: Key[Array, ""], env: Environment) -> ReturnGenerator:
        """A return generator whose weights start near 1."""
        return ReturnGenerator.random(key, env.spec, agent.network, self.transformer, self.bound, agent.weight_scale)

    def credit(self, weights: ReturnGenerator, experience: Experience) -> Credit:
        """Every action before a reward gets the same share of it."""
        seen, baseline = experience.trajectory, experience.weighted_values[:-1]
        shares = weights(seen)
        generated = generated_returns(shares, seen)
        return Credit(
            advantages=generated - baseline,
            weights=jnp.broadcast_to(shares, (*shares.shape, *shares.shape)),
            signal=seen.rewards,
            baseline=baseline,
            weighted_return=generated,
            regular_return=experience.regular_returns,
        )


def weighted_rewards(weights: PairWeights, experience: Experience) -> Credit:
    """The credit of pairwise weighted rewards."""
    seen, rewards, values = experience.trajectory, experience.trajectory.rewards, experience.weighted_values
    pairs = experience.pairs(weights, rewards)
    return Credit(
        advantages=pwr(pairs, rewards, values, seen.valid, seen.episode),
        weights=within_episodes(pairs, seen),
        signal=rewards,
        baseline=values[:-1],
        weighted_return=pairwise_sum(pairs, rewards, seen.valid, seen.episode),
        regular_return=experience.regular_returns,
    )


def generated_returns(shares: Float[Array, " T"], episode: Trajectory) -> Float[Array, " T"]:
    """G_t = Σ_{k>t} β_k R_k of an episode, where `shares[k]` is β_{k+1}, the weight of `rewards[k]`."""
    weighted = shares * jnp.where(episode.valid, episode.rewards, 0.0)
    return discounted_returns(weighted, 1.0, episode.valid)
