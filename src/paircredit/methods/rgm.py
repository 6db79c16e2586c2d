"""RGM: returns as weighted sums of rewards, one learned weight per reward of the episode (Wang et al. 2019)."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from paircredit.envs.protocol import Environment
from paircredit.estimators import discounted_returns
from paircredit.metagradient import MetaProblem
from paircredit.methods.acting import logits_of_policy, no_memory, nothing_to_remember
from paircredit.methods.credit import Credit
from paircredit.methods.inner_loop import InnerLoop, Trained
from paircredit.methods.outer_loop import OuterData, OuterLoop
from paircredit.methods.policy_gradient import over_steps
from paircredit.networks import NetworkSpec, TransformerSpec, policy_for, value_for
from paircredit.types import PyTree, Trajectory
from paircredit.weights import ReturnGenerator
from paircredit.weights.return_generator import Bound


class RGMLearner(eqx.Module):
    """Policy θ, the values of the generated and of the regular return, and the return generator η."""

    policy: Trained
    weighted_value: Trained
    value: Trained
    weights: Trained


class RGMData(eqx.Module):
    """What an inner update learned from: the policy before it, the episodes, and the baseline (constants)."""

    policy: Trained
    trajectory: Trajectory
    baseline: Float[Array, "B T"]


class RGM(eqx.Module):
    """Policy gradient with Ψ_t = Σ_{k>t} β_k R_k − v_w(S_t), the weights β of an episode learned by metagradient."""

    inner: InnerLoop = InnerLoop()
    """Policy and value learning; its γ is for the regular return alone."""
    outer: OuterLoop = OuterLoop(learning_rate=1e-4)
    """Learning of the return generator (step size: paper, bsuite appendix; 1e-6 in Key-to-Door)."""
    network: NetworkSpec = eqx.field(static=True, default=NetworkSpec())
    """Sizes of networks (paper, KtD appendix)."""
    transformer: TransformerSpec = eqx.field(static=True, default=TransformerSpec())
    """Sizes of the Transformer that makes the weights."""
    bound: Bound = eqx.field(static=True, default="linear")
    """β as the last layer gives it, or 2·sigmoid of it (the paper names a linear layer and no bound)."""

    needs_whole_episodes: ClassVar[str] = (
        "its weights are made of the whole episode and nothing stands in for rewards behind a cut"
    )
    initial_carry = no_memory
    policy = logits_of_policy
    remember = nothing_to_remember

    @property
    def episodes(self) -> int:
        """How many episodes each update learns from."""
        return self.inner.episodes

    def init(self, key: Key[Array, ""], env: Environment) -> RGMLearner:
        """A nearly uniform policy, fresh value functions, and weights near 1."""
        policy_key, weights_key = jax.random.split(key)
        own_key, value_key = jax.random.split(jax.random.fold_in(key, 1))
        policy = policy_for(policy_key, env.spec, self.network, self.inner.initial_scale)
        weights = ReturnGenerator.random(
            weights_key, env.spec, self.network, self.transformer, self.bound, self.outer.initial_scale
        )
        return RGMLearner(
            policy=self.inner.trained_policy(policy),
            weighted_value=self.inner.trained_value(value_for(own_key, env.spec, self.network)),
            value=self.inner.trained_value(value_for(value_key, env.spec, self.network)),
            weights=self.outer.trained_weights(weights),
        )

    def learn(self, learner: RGMLearner, trajectory: Trajectory) -> tuple[RGMLearner, RGMData]:
        """The inner update: θ along generated returns, both value functions towards their returns."""
        kept = self._inner_data(learner, trajectory)
        generated = generated_returns(jax.vmap(learner.weights.parameters)(trajectory), trajectory)
        values = over_steps(learner.value.parameters, trajectory.observations)
        returns = self.inner.regular_returns(values, trajectory)
        advantages = self.inner.prepare(generated - kept.baseline, trajectory)
        learner = RGMLearner(
            policy=self.inner.improve_policy(learner.policy, trajectory, advantages),
            weighted_value=self.inner.improve_value(learner.weighted_value, trajectory, generated),
            value=self.inner.improve_value(learner.value, trajectory, returns),
            weights=learner.weights,
        )
        return learner, kept

    def credit(self, learner: RGMLearner, trajectory: Trajectory) -> Credit:
        """What the actions of a batch are credited with: every action before a reward gets the same share of it."""
        kept = self._inner_data(learner, trajectory)
        shares = jax.vmap(learner.weights.parameters)(trajectory)
        pairs = jnp.broadcast_to(shares[:, None, :], (*shares.shape, shares.shape[1]))
        return Credit(generated_returns(shares, trajectory) - kept.baseline, pairs, trajectory.rewards)

    def problem(self) -> MetaProblem:
        """η enters through the generated returns."""

        def raw(weights: ReturnGenerator, data: RGMData) -> Array:
            return generated_returns(jax.vmap(weights)(data.trajectory), data.trajectory) - data.baseline

        return self.outer.problem(self.inner, raw)

    def outer_data(self, learner: RGMLearner, trajectory: Trajectory) -> OuterData:
        """Regular advantages of a batch collected with the learner's policy."""
        return self.outer.data(self.inner, learner.value.parameters, trajectory)

    def improve_weights(self, learner: RGMLearner, gradient: PyTree) -> RGMLearner:
        """The outer update of η."""
        return dataclasses.replace(learner, weights=learner.weights.step(self.outer.optimiser, gradient))

    def _inner_data(self, learner: RGMLearner, trajectory: Trajectory) -> RGMData:
        baseline = over_steps(learner.weighted_value.parameters, trajectory.observations)[:, :-1]
        return RGMData(learner.policy, trajectory, baseline)


def generated_returns(shares: Float[Array, "B T"], trajectory: Trajectory) -> Float[Array, "B T"]:
    """G_t = Σ_{k>t} β_k R_k of a batch of episodes.

    Args:
        shares: `shares[:, k]` is β_{k+1}, the weight of `rewards[:, k]`.
        trajectory: the batch.
    """
    weighted = shares * jnp.where(trajectory.valid, trajectory.rewards, 0.0)
    return jax.vmap(discounted_returns, in_axes=(0, None, 0))(weighted, 1.0, trajectory.valid)
