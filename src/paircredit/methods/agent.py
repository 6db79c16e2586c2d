"""The one actor-critic: a credit rule moves the policy, returns move the values, the next batch evaluates the weights.

All that the methods of the paper share is written here once. What moves the policy is what the metagradient
differentiates, by construction: `learn` takes its step with the advantages, the loss and the optimiser of `problem`.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Float, Int, Key

from paircredit.envs.protocol import Environment
from paircredit.errors import PaircreditError
from paircredit.estimators.shapes import expect_shape
from paircredit.metagradient import MetaProblem, explicit_one_step
from paircredit.methods.loops import InnerLoop, OuterData, OuterLoop, Trained, over_steps, part
from paircredit.methods.rule import Credit, CreditRule, Experience, LearningRule, MetaMethod
from paircredit.networks import NetworkSpec, policy_for, value_for
from paircredit.networks.state_functions import ValueTable, num_states, policy_and_value_for, values_and_features
from paircredit.settings import setting
from paircredit.types import PyTree, Trajectory


class Learner(eqx.Module):
    """All that changes in training; what a rule has no use for is None.

    Attributes:
        policy: θ.
        value: the value function of the regular return; None also where the policy's network has it.
        weighted_value: the value function of the weighted return.
        weights: η.
        own: what a rule learns otherwise.
    """

    policy: Trained
    value: Trained | None = None
    weighted_value: Trained | None = None
    weights: Trained | None = None
    own: PyTree = ()


class Kept(eqx.Module):
    """What a metagradient through an inner update needs (constants): the policy before it, and what it learned from.

    `targets` are those of a value function that is trained together with the policy.
    """

    policy: Trained
    experience: Experience
    targets: Float[Array, "B T"] | None


class ActorCritic(eqx.Module):
    """An actor-critic whose policy follows the credit of a rule."""

    rule: CreditRule
    inner: InnerLoop = setting(InnerLoop(), "Policy and value learning")
    outer: OuterLoop | None = setting(None, "Weight learning; None where there are no weights to learn")
    network: NetworkSpec = setting(NetworkSpec(), "Sizes of networks", "paper, KtD appendix")
    fixed_value: Float[Array, " S"] | None = setting(
        None,
        "Hold the value function of the regular return at this table (paper, masked-value probe); left out, it learns",
    )

    @property
    def episodes(self) -> int:
        return self.inner.episodes

    @property
    def whole_episodes(self) -> str:
        return self.rule.needs.whole_episodes

    @property
    def learns_weights(self) -> bool:
        return self.outer is not None

    @property
    def setting_of_memory(self) -> str:
        return self.rule.needs.setting_of_memory

    @property
    def weight_scale(self) -> float:
        """How far from their middle fresh weights start."""
        return OuterLoop().initial_scale if self.outer is None else self.outer.initial_scale

    @property
    def _outer(self) -> OuterLoop:
        if self.outer is None:
            raise ValueError("This agent has no outer loop.")
        return self.outer

    def init(self, key: Key[Array, ""], env: Environment) -> Learner:
        """A nearly uniform policy, fresh value functions and weights, and the rule's own parts."""
        needs, spec, start = self.rule.needs, env.spec, self.inner.value_scale
        scale = self.inner.initial_scale
        policy_key, weights_key = jax.random.split(key) if self.learns_weights else (key, key)
        value_key = weighted_key = jax.random.fold_in(key, 1)
        if needs.values == "both":
            weighted_key, value_key = jax.random.split(value_key)
        value = weighted_value = None
        if needs.sharing:
            policy, value = policy_and_value_for(policy_key, value_key, spec, self.network, scale, start)
        else:
            policy = policy_for(policy_key, spec, self.network, scale)
            value = None if needs.values == "weighted" else value_for(value_key, spec, self.network, start)
        if needs.values != "regular":
            weighted_value = Trained.fresh(
                value_for(weighted_key, spec, self.network, start), self.inner.value_optimiser
            )
        if self.fixed_value is not None:
            if needs.values == "weighted":
                raise PaircreditError(
                    f"{type(self.rule).__name__} has no value function of the regular return, so none can be fixed; "
                    "leave out fixed_value."
                )
            expect_shape(f"The fixed value function for {spec.name}", self.fixed_value, (num_states(spec),))
            value = ValueTable(self.fixed_value)
        weights = self.rule.weights(self, weights_key, env)
        if weights is None and self.outer is not None:
            raise PaircreditError(f"{type(self.rule).__name__} has no weights to learn; leave out its outer loop.")
        if weights is not None:
            weights = Trained(weights, ()) if self.outer is None else Trained.fresh(weights, self.outer.optimiser)
        own = self.rule.start(self, key, env) if isinstance(self.rule, LearningRule) else ()
        return Learner(
            policy=Trained.fresh(policy, self.inner.policy_optimiser),
            value=None if value is None else Trained.fresh(value, self.inner.value_optimiser),
            weighted_value=weighted_value,
            weights=weights,
            own=own,
        )

    def initial_carry(self, learner: Learner) -> tuple[()]:
        return ()

    def policy(self, learner: Learner, carry: tuple[()], observation: PyTree) -> tuple[Float[Array, " A"], tuple[()]]:
        return learner.policy.parameters(observation), carry

    def remember(self, carry: tuple[()], action: Int[Array, ""], reward: Float[Array, ""]) -> tuple[()]:
        return carry

    def learn(self, learner: Learner, trajectory: Trajectory) -> tuple[Learner, PyTree]:
        """The inner update: θ along the credit, value functions towards their returns, the rule's own parts.

        Returns the new learner, and what a metagradient through the update needs (() without an outer loop).
        """
        seen: PyTree = ()
        before = learner
        if isinstance(self.rule, LearningRule):
            own, seen = self.rule.learn(self, learner, trajectory)
            learner = dataclasses.replace(learner, own=own)
        experience = self.experience(before, trajectory, seen)
        problem = self.problem()
        advantages, credit = self._advantages(_parameters(before.weights), experience)
        kept = Kept(before.policy, experience, credit.regular_return if before.value is None else None)
        with part("policy"):
            gradients = jax.grad(problem.inner_loss)(before.policy.parameters, kept, advantages)
            policy = before.policy.step(problem.optimiser, gradients)
        value, weighted_value = before.value, before.weighted_value
        if value is not None and self.fixed_value is None and credit.regular_return is not None:
            value = self.inner.improve_value(value, trajectory, credit.regular_return)
        if weighted_value is not None and credit.weighted_return is not None:
            weighted_value = self.inner.improve_value(weighted_value, trajectory, credit.weighted_return)
        learner = dataclasses.replace(learner, policy=policy, value=value, weighted_value=weighted_value)
        return learner, kept if self.learns_weights else ()

    def credit(self, learner: Learner, trajectory: Trajectory) -> Credit:
        seen = self.rule.look(self, learner, trajectory) if isinstance(self.rule, LearningRule) else ()
        return self._credit(_parameters(learner.weights), self.experience(learner, trajectory, seen))

    def experience(self, learner: Learner, trajectory: Trajectory, own: PyTree = ()) -> Experience:
        """A batch and what the learner's value functions say of it."""
        needs = self.rule.needs
        values = weighted_values = features = returns = None

        def constants(value: Any) -> Float[Array, "B T_plus_1"]:
            return jax.lax.stop_gradient(over_steps(value, trajectory.observations))

        if needs.values != "weighted":
            critic = self.critic(learner)
            if needs.features:
                values, features = values_and_features(critic, trajectory.observations)
            else:
                values = constants(critic)
            returns = self.inner.regular_returns(values, trajectory)
        if learner.weighted_value is not None:
            weighted_values = constants(learner.weighted_value.parameters)
        discounts = self.inner.discounts(trajectory)
        return Experience(trajectory, discounts, values, weighted_values, returns, features, own)

    def critic(self, learner: Learner) -> Any:
        """The value function of the regular return, which may be a part of the policy's network."""
        return learner.policy.parameters.critic if learner.value is None else learner.value.parameters

    def _credit(self, weights: PyTree, experience: Experience) -> Credit:
        return jax.vmap(lambda one: self.rule.credit(weights, one))(experience)

    def _advantages(
        self, weights: PyTree, experience: Experience, fixed: PyTree | None = None
    ) -> tuple[Float[Array, "B T"], Credit]:
        """What the policy gradient takes, and the credit that it was made of."""
        credit = self._credit(weights, experience)
        source = None if fixed is None else self._credit(fixed, experience).advantages
        return self.inner.prepare(credit.advantages, experience.trajectory, statistics_of=source), credit

    def problem(self) -> MetaProblem:
        """The pieces of the metagradient: η enters through the advantages and nowhere else."""

        def advantages(weights: PyTree, kept: Kept, fixed: PyTree | None) -> Array:
            return self._advantages(weights, kept.experience, fixed)[0]

        def inner_loss(policy: Any, kept: Kept, psi: Array) -> Array:
            return self.inner.policy_loss(policy, kept.experience.trajectory, psi, kept.targets)

        def outer_loss(policy: Any, data: OuterData) -> Array:
            return self._outer.loss(policy, data)

        return MetaProblem(advantages, inner_loss, self.inner.policy_optimiser, outer_loss)

    def outer_data(self, learner: Learner, trajectory: Trajectory) -> OuterData:
        return self._outer.data(self.inner, self.critic(learner), trajectory)

    def improve_weights(self, learner: Learner, gradient: PyTree) -> Learner:
        if learner.weights is None:
            raise ValueError("This learner has no weights.")
        return dataclasses.replace(learner, weights=learner.weights.step(self._outer.optimiser, gradient))


def _parameters(trained: Trained | None) -> PyTree:
    return None if trained is None else trained.parameters


def meta_learn(method: MetaMethod, learner: Any, kept: Any, next_trajectory: Trajectory) -> Any:
    """η → η' by the one-step rule, given what `learn` returned for an inner update and the batch that follows it."""
    step = explicit_one_step(
        method.problem(),
        learner.weights.parameters,
        kept.policy.parameters,
        kept.policy.state,
        kept,
        method.outer_data(learner, next_trajectory),
    )
    return method.improve_weights(learner, step.gradient)
