"""RGM: returns as weighted sums of rewards, one learned weight per reward of the episode (Wang et al. 2019)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from paircredit.envs.protocol import Environment
from paircredit.estimators import discounted_returns
from paircredit.methods.rule import Credit, Experience, Needs
from paircredit.settings import setting
from paircredit.types import Trajectory
from paircredit.weights import ReturnGenerator, TransformerSpec
from paircredit.weights.return_generator import Bound

if TYPE_CHECKING:
    from paircredit.methods.agent import ActorCritic


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


def generated_returns(shares: Float[Array, " T"], episode: Trajectory) -> Float[Array, " T"]:
    """G_t = Σ_{k>t} β_k R_k of an episode, where `shares[k]` is β_{k+1}, the weight of `rewards[k]`."""
    weighted = shares * jnp.where(episode.valid, episode.rewards, 0.0)
    return discounted_returns(weighted, 1.0, episode.valid)
