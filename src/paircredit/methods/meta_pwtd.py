"""Meta-PWTD: learned weights for every pair of a decision and a later TD error."""

from __future__ import annotations

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from paircredit.envs.protocol import Environment
from paircredit.estimators import td_errors
from paircredit.estimators.shapes import expect_shape
from paircredit.metagradient import MetaProblem
from paircredit.methods.acting import logits_of_policy, no_memory, nothing_to_remember
from paircredit.methods.credit import Credit
from paircredit.methods.inner_loop import InnerLoop, Trained, critic_of
from paircredit.methods.outer_loop import InnerData, OuterData, OuterLoop
from paircredit.networks import NetworkSpec, ValueTable, num_states, policy_and_value_for, values_and_features
from paircredit.types import PyTree, Trajectory
from paircredit.weights import PairWeights, weights_for


class MetaPWTDLearner(eqx.Module):
    """Policy θ, the value function of the regular return (None where the policy's network has it), the weights η."""

    policy: Trained
    value: Trained | None
    weights: Trained


class MetaPWTD(eqx.Module):
    """Policy gradient with Ψ = Σ_k f_η(S_t, S_k) δ_k, f_η learned by metagradient."""

    inner: InnerLoop = InnerLoop()
    """Policy and value learning."""
    outer: OuterLoop = OuterLoop()
    """Weight learning."""
    network: NetworkSpec = eqx.field(static=True, default=NetworkSpec())
    """Sizes of networks (paper, KtD appendix)."""
    fixed_value: Float[Array, " S"] | None = None
    """Hold the value function at this table (paper, masked-value probe); left out, it is learned."""

    initial_carry = no_memory
    policy = logits_of_policy
    remember = nothing_to_remember

    @property
    def episodes(self) -> int:
        """How many episodes each update learns from."""
        return self.inner.episodes

    def init(self, key: Key[Array, ""], env: Environment) -> MetaPWTDLearner:
        """A nearly uniform policy, a fresh value function (or the fixed one), and weights near ½."""
        policy_key, weights_key = jax.random.split(key)
        policy, value = policy_and_value_for(
            policy_key, jax.random.fold_in(key, 1), env.spec, self.network, self.inner.initial_scale
        )
        weights = weights_for(weights_key, env.spec, self.network, self.outer.initial_scale, sees_signal=True)
        if self.fixed_value is not None:
            expect_shape(f"The fixed value function for {env.spec.name}", self.fixed_value, (num_states(env.spec),))
            value = ValueTable(self.fixed_value)
        return MetaPWTDLearner(
            policy=self.inner.trained_policy(policy),
            value=None if value is None else self.inner.trained_value(value),
            weights=self.outer.trained_weights(weights),
        )

    def learn(self, learner: MetaPWTDLearner, trajectory: Trajectory) -> tuple[MetaPWTDLearner, InnerData]:
        """The inner update: θ along weighted TD errors, the value function towards the regular return."""
        kept, values = self._inner_data(learner, trajectory)
        advantages = self.problem().advantages(learner.weights.parameters, kept, None)
        if self.fixed_value is not None:
            policy, value = self.inner.improve_policy(learner.policy, trajectory, advantages), learner.value
        else:
            returns = self.inner.regular_returns(values, trajectory)
            policy, value = self.inner.improve_both(learner.policy, learner.value, trajectory, advantages, returns)
        return MetaPWTDLearner(policy, value, learner.weights), kept

    def _inner_data(
        self, learner: MetaPWTDLearner, trajectory: Trajectory
    ) -> tuple[InnerData, Float[Array, "B T_plus_1"]]:
        critic = critic_of(learner.policy, learner.value)
        values, features = values_and_features(critic, trajectory.observations)
        errors = jax.vmap(td_errors)(trajectory.rewards, values, self.inner.discounts(trajectory), trajectory.valid)
        targets = self.inner.regular_returns(values, trajectory) if learner.value is None else None
        return InnerData(learner.policy, trajectory, errors, jnp.zeros_like(errors), features, targets), values

    def credit(self, learner: MetaPWTDLearner, trajectory: Trajectory) -> Credit:
        """What the actions of a batch are credited with."""
        return self._inner_data(learner, trajectory)[0].credit(learner.weights.parameters)

    def problem(self) -> MetaProblem:
        """η enters through the weights of the TD errors."""

        def raw(weights: PairWeights, data: InnerData) -> Array:
            return data.weighted_sums(weights) - data.baseline

        return self.outer.problem(self.inner, raw, lambda data: data.targets)

    def outer_data(self, learner: MetaPWTDLearner, trajectory: Trajectory) -> OuterData:
        """Regular advantages of a batch collected with the learner's policy."""
        return self.outer.data(self.inner, critic_of(learner.policy, learner.value), trajectory)

    def improve_weights(self, learner: MetaPWTDLearner, gradient: PyTree) -> MetaPWTDLearner:
        """The outer update of η."""
        return dataclasses.replace(learner, weights=learner.weights.step(self.outer.optimiser, gradient))
