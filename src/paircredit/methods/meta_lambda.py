"""Meta-λ(s): the λ-estimator with a λ for every state, learned by metagradient (Xu et al. 2018)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from paircredit.envs.protocol import Environment
from paircredit.errors import unknown_name
from paircredit.estimators import lambda_advantages, td_errors
from paircredit.metagradient import MetaProblem
from paircredit.methods.acting import logits_of_policy, no_memory, nothing_to_remember
from paircredit.methods.credit import Credit, within_episodes
from paircredit.methods.inner_loop import InnerLoop, Trained
from paircredit.methods.outer_loop import OuterData, OuterLoop
from paircredit.methods.policy_gradient import over_steps
from paircredit.networks import NetworkSpec, lambda_for, policy_for, value_for
from paircredit.types import PyTree, Trajectory
from paircredit.weights import trace_weights


class MetaLambdaLearner(eqx.Module):
    """Policy θ, the values of the λ(s)-return and of the regular return, and λ(s) with its parameters η."""

    policy: Trained
    weighted_value: Trained
    value: Trained
    weights: Trained


class MetaLambdaData(eqx.Module):
    """What an inner update learned from: the policy before it, the episodes, and v_w of all states (constants)."""

    policy: Trained
    trajectory: Trajectory
    values: Float[Array, "B T_plus_1"]


class MetaLambda(eqx.Module):
    """Policy gradient with Ψ_t = G_t − v_w(S_t), G the λ(s)-return, λ(s) learned by metagradient.

    G_t = R_{t+1} + γ[(1 − λ(S_{t+1})) v_w(S_{t+1}) + λ(S_{t+1}) G_{t+1}].
    """

    inner: InnerLoop = InnerLoop()
    """Policy and value learning."""
    outer: OuterLoop = OuterLoop()
    """Learning of λ(s)."""
    initial_lambda: float = 0.5
    """What λ(s) starts near in all states (our choice: a sigmoid at 0; 0 and 1 could never be left)."""
    at: Literal["next", "current"] = eqx.field(static=True, default="next")
    """Whose λ decides about what follows the transition from S_t to S_{t+1}: that of the state that would be
    bootstrapped from, S_{t+1}, or that of S_t (the paper does not say)."""
    network: NetworkSpec = eqx.field(static=True, default=NetworkSpec())
    """Sizes of networks (paper, KtD appendix)."""

    initial_carry = no_memory
    policy = logits_of_policy
    remember = nothing_to_remember

    @property
    def episodes(self) -> int:
        """How many episodes each update learns from."""
        return self.inner.episodes

    def init(self, key: Key[Array, ""], env: Environment) -> MetaLambdaLearner:
        """A nearly uniform policy, fresh value functions, and a λ(s) that hardly looks at the state."""
        policy_key, lambda_key = jax.random.split(key)
        own_key, value_key = jax.random.split(jax.random.fold_in(key, 1))
        policy = policy_for(policy_key, env.spec, self.network, self.inner.initial_scale)
        weights = lambda_for(lambda_key, env.spec, self.network, self.initial_lambda, self.outer.initial_scale)
        return MetaLambdaLearner(
            policy=self.inner.trained_policy(policy),
            weighted_value=self.inner.trained_value(value_for(own_key, env.spec, self.network)),
            value=self.inner.trained_value(value_for(value_key, env.spec, self.network)),
            weights=self.outer.trained_weights(weights),
        )

    def learn(self, learner: MetaLambdaLearner, trajectory: Trajectory) -> tuple[MetaLambdaLearner, MetaLambdaData]:
        """The inner update: θ along λ(s)-advantages, both value functions towards their returns."""
        kept = self._inner_data(learner, trajectory)
        advantages = self._advantages(learner.weights.parameters, kept)
        values = over_steps(learner.value.parameters, trajectory.observations)
        returns = self.inner.regular_returns(values, trajectory)
        prepared = self.inner.prepare(advantages, trajectory)
        learner = MetaLambdaLearner(
            policy=self.inner.improve_policy(learner.policy, trajectory, prepared),
            weighted_value=self.inner.improve_value(
                learner.weighted_value, trajectory, advantages + kept.values[:, :-1]
            ),
            value=self.inner.improve_value(learner.value, trajectory, returns),
            weights=learner.weights,
        )
        return learner, kept

    def credit(self, learner: MetaLambdaLearner, trajectory: Trajectory) -> Credit:
        """What the actions of a batch are credited with: TD errors, weighed by products of γλ(s)."""
        kept = self._inner_data(learner, trajectory)
        discounts, lambdas = self.inner.discounts(trajectory), self._lambdas(learner.weights.parameters, trajectory)
        errors = jax.vmap(td_errors)(trajectory.rewards, kept.values, discounts, trajectory.valid)
        weights = jax.vmap(trace_weights)(jnp.where(trajectory.valid, discounts * lambdas, 0.0))
        return Credit(self._advantages(learner.weights.parameters, kept), within_episodes(weights, trajectory), errors)

    def problem(self) -> MetaProblem:
        """η enters through λ(s) alone; the values in the λ(s)-return are constants."""
        return self.outer.problem(self.inner, self._advantages)

    def outer_data(self, learner: MetaLambdaLearner, trajectory: Trajectory) -> OuterData:
        """Regular advantages of a batch collected with the learner's policy."""
        return self.outer.data(self.inner, learner.value.parameters, trajectory)

    def improve_weights(self, learner: MetaLambdaLearner, gradient: PyTree) -> MetaLambdaLearner:
        """The outer update of η."""
        return dataclasses.replace(learner, weights=learner.weights.step(self.outer.optimiser, gradient))

    def _inner_data(self, learner: MetaLambdaLearner, trajectory: Trajectory) -> MetaLambdaData:
        values = over_steps(learner.weighted_value.parameters, trajectory.observations)
        return MetaLambdaData(learner.policy, trajectory, values)

    def _lambdas(self, weights: Callable, trajectory: Trajectory) -> Float[Array, "B T"]:
        lambdas = over_steps(weights, trajectory.observations)
        if self.at == "next":
            return lambdas[:, 1:]
        if self.at != "current":
            raise unknown_name("state whose λ is taken", self.at, ("next", "current"))
        return lambdas[:, :-1]

    def _advantages(self, weights: Callable, data: MetaLambdaData) -> Float[Array, "B T"]:
        trajectory = data.trajectory
        return jax.vmap(lambda_advantages)(
            trajectory.rewards,
            data.values,
            self.inner.discounts(trajectory),
            self._lambdas(weights, trajectory),
            trajectory.valid,
        )
