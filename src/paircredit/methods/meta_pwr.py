"""Meta-PWR: learned weights for every pair of a decision and a later reward."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
from jaxtyping import Array, Float, Key

from paircredit.envs.protocol import Environment
from paircredit.metagradient import MetaProblem
from paircredit.methods.acting import logits_of_policy, no_memory, nothing_to_remember
from paircredit.methods.credit import Credit
from paircredit.methods.inner_loop import InnerLoop, Trained
from paircredit.methods.outer_loop import InnerData, OuterData, OuterLoop
from paircredit.methods.policy_gradient import over_steps
from paircredit.networks import NetworkSpec, policy_for, value_for, values_and_features
from paircredit.types import PyTree, Trajectory
from paircredit.weights import PairWeights, weights_for


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
    network: NetworkSpec = eqx.field(static=True, default=NetworkSpec())
    """Sizes of networks (paper, KtD appendix)."""

    needs_whole_episodes: ClassVar[str] = (
        "its weights reach to the end of the episode and nothing stands in for rewards behind a cut"
    )
    initial_carry = no_memory
    policy = logits_of_policy
    remember = nothing_to_remember

    @property
    def episodes(self) -> int:
        """How many episodes each update learns from."""
        return self.inner.episodes

    def init(self, key: Key[Array, ""], env: Environment) -> MetaPWRLearner:
        """A nearly uniform policy, fresh value functions, and weights near ½."""
        policy_key, weights_key = jax.random.split(key)
        own_key, value_key = jax.random.split(jax.random.fold_in(key, 1))
        policy = policy_for(policy_key, env.spec, self.network, self.inner.initial_scale)
        weights = weights_for(weights_key, env.spec, self.network, self.outer.initial_scale, sees_signal=False)
        return MetaPWRLearner(
            policy=self.inner.trained_policy(policy),
            weighted_value=self.inner.trained_value(value_for(own_key, env.spec, self.network)),
            value=self.inner.trained_value(value_for(value_key, env.spec, self.network)),
            weights=self.outer.trained_weights(weights),
        )

    def learn(self, learner: MetaPWRLearner, trajectory: Trajectory) -> tuple[MetaPWRLearner, InnerData]:
        """The inner update: θ along weighted advantages, both value functions towards their returns."""
        kept, values = self._inner_data(learner, trajectory)
        weighted_returns = kept.weighted_sums(learner.weights.parameters)
        returns = self.inner.regular_returns(values, trajectory)
        advantages = self.inner.prepare(weighted_returns - kept.baseline, trajectory)
        learner = MetaPWRLearner(
            policy=self.inner.improve_policy(learner.policy, trajectory, advantages),
            weighted_value=self.inner.improve_value(learner.weighted_value, trajectory, weighted_returns),
            value=self.inner.improve_value(learner.value, trajectory, returns),
            weights=learner.weights,
        )
        return learner, kept

    def _inner_data(
        self, learner: MetaPWRLearner, trajectory: Trajectory
    ) -> tuple[InnerData, Float[Array, "B T_plus_1"]]:
        baseline = over_steps(learner.weighted_value.parameters, trajectory.observations)[:, :-1]
        values, features = values_and_features(learner.value.parameters, trajectory.observations)
        return InnerData(learner.policy, trajectory, trajectory.rewards, baseline, features), values

    def credit(self, learner: MetaPWRLearner, trajectory: Trajectory) -> Credit:
        """What the actions of a batch are credited with."""
        return self._inner_data(learner, trajectory)[0].credit(learner.weights.parameters)

    def problem(self) -> MetaProblem:
        """η enters through the weighted returns."""

        def raw(weights: PairWeights, data: InnerData) -> Array:
            return data.weighted_sums(weights) - data.baseline

        return self.outer.problem(self.inner, raw)

    def outer_data(self, learner: MetaPWRLearner, trajectory: Trajectory) -> OuterData:
        """Regular advantages of a batch collected with the learner's policy."""
        return self.outer.data(self.inner, learner.value.parameters, trajectory)

    def improve_weights(self, learner: MetaPWRLearner, gradient: PyTree) -> MetaPWRLearner:
        """The outer update of η."""
        return dataclasses.replace(learner, weights=learner.weights.step(self.outer.optimiser, gradient))
