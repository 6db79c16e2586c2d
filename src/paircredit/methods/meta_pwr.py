"""Meta-PWR: learned weights for every pair of a decision and a later reward."""

from __future__ import annotations

import dataclasses

import equinox as eqx
import jax
from jaxtyping import Array, Float, Key

from paircredit.envs.protocol import Environment
from paircredit.estimators import pairwise_sum
from paircredit.metagradient import MetaProblem
from paircredit.methods.acting import logits_of_policy, no_memory
from paircredit.methods.inner_loop import InnerLoop, Trained
from paircredit.methods.outer_loop import InnerData, OuterData, OuterLoop
from paircredit.methods.policy_gradient import over_steps
from paircredit.networks import num_states, policy_for, value_for
from paircredit.types import PyTree, Trajectory
from paircredit.weights import PairWeights, SigmoidTable


class MetaPWRLearner(eqx.Module):
    """Policy θ, the values of the weighted and of the regular return, and the weights η."""

    policy: Trained
    weighted_value: Trained
    value: Trained
    weights: Trained


class MetaPWR(eqx.Module):
    """Policy gradient with Ψ = Σ_k f_η(S_t, S_k) R_k − v(S_t), f_η learned by metagradient."""

    inner: InnerLoop = InnerLoop()
    """Policy and value learning."""
    outer: OuterLoop = OuterLoop()
    """Weight learning."""

    initial_carry = no_memory
    policy = logits_of_policy

    @property
    def episodes(self) -> int:
        """How many episodes each update learns from."""
        return self.inner.episodes

    def init(self, key: Key[Array, ""], env: Environment) -> MetaPWRLearner:
        """A nearly uniform policy, value functions of zeros, and weights near ½."""
        policy_key, weights_key = jax.random.split(key)
        return MetaPWRLearner(
            policy=self.inner.trained_policy(policy_for(policy_key, env.spec, self.inner.initial_scale)),
            weighted_value=self.inner.trained_value(value_for(env.spec)),
            value=self.inner.trained_value(value_for(env.spec)),
            weights=self.outer.trained_weights(
                SigmoidTable.random(weights_key, num_states(env.spec), self.outer.initial_scale)
            ),
        )

    def learn(self, learner: MetaPWRLearner, trajectory: Trajectory) -> tuple[MetaPWRLearner, InnerData]:
        """The inner update: θ along weighted advantages, both value functions towards their returns."""
        baseline = over_steps(learner.weighted_value.parameters, trajectory.observations)[:, :-1]
        kept = InnerData(learner.policy, trajectory, trajectory.rewards, baseline)
        weighted_returns = self._weighted_returns(learner.weights.parameters, kept)
        returns = self.inner.regular_returns(learner.value.parameters, trajectory)
        advantages = self.inner.prepare(weighted_returns - baseline, trajectory)
        learner = MetaPWRLearner(
            policy=self.inner.improve_policy(learner.policy, trajectory, advantages),
            weighted_value=self.inner.improve_value(learner.weighted_value, trajectory, weighted_returns),
            value=self.inner.improve_value(learner.value, trajectory, returns),
            weights=learner.weights,
        )
        return learner, kept

    def _weighted_returns(self, weights: PairWeights, data: InnerData) -> Float[Array, "B T"]:
        pairs = jax.vmap(weights)(data.trajectory.observations)
        return jax.vmap(pairwise_sum)(pairs, data.signal, data.trajectory.valid)

    def problem(self) -> MetaProblem:
        """η enters through the weighted returns."""

        def raw(weights: PairWeights, data: InnerData) -> Array:
            return self._weighted_returns(weights, data) - data.baseline

        def advantages(weights: PairWeights, data: InnerData, fixed: PairWeights | None) -> Array:
            source = None if fixed is None else raw(fixed, data)
            return self.inner.prepare(raw(weights, data), data.trajectory, statistics_of=source)

        return MetaProblem(
            advantages=advantages,
            inner_loss=lambda policy, data, psi: self.inner.policy_loss(policy, data.trajectory, psi),
            optimiser=self.inner.policy_optimiser,
            outer_loss=self.outer.loss,
        )

    def outer_data(self, learner: MetaPWRLearner, trajectory: Trajectory) -> OuterData:
        """Regular advantages of a batch collected with the learner's policy."""
        return self.outer.data(self.inner, learner.value.parameters, trajectory)

    def improve_weights(self, learner: MetaPWRLearner, gradient: PyTree) -> MetaPWRLearner:
        """The outer update of η."""
        return dataclasses.replace(learner, weights=learner.weights.step(self.outer.optimiser, gradient))
