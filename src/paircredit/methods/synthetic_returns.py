"""Synthetic Returns: states that bring rewards later are paid for at once (Raposo et al. 2021)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from paircredit.envs.protocol import Environment
from paircredit.estimators import associated_rewards, lambda_advantages, synthetic_rewards, td_errors
from paircredit.metagradient.optimisers import Optimiser
from paircredit.methods.acting import logits_of_policy, no_memory, nothing_to_remember
from paircredit.methods.credit import Credit
from paircredit.methods.inner_loop import InnerLoop, Trained
from paircredit.methods.policy_gradient import mean_over_valid, over_steps
from paircredit.networks import NetworkSpec, contribution_for, policy_for, value_for
from paircredit.networks.state_functions import Contribution
from paircredit.types import Trajectory
from paircredit.weights import exponential_weights


class SyntheticReturnsLearner(eqx.Module):
    """Policy θ, the value of the augmented return, and the functions c, g and b."""

    policy: Trained
    value: Trained
    contribution: Trained


class SyntheticReturns(eqx.Module):
    """A2C on the rewards α c(S_t) + β r_t, where r_t ≈ g(S_t) Σ_{k<t} c(S_k) + b(S_t) is learned by regression."""

    inner: InnerLoop = InnerLoop()
    """Policy and value learning."""
    lambda_: float = 1.0
    """λ of the A2C that learns from the rewards (its own: paper, DAG appendix; 0.5 in Key-to-Door)."""
    synthetic_weight: float = 0.3
    """α, the weight of contributions (sample configuration of the authors' code)."""
    reward_weight: float = 1.0
    """β, the weight of the environment's rewards (sample configuration of the authors' code)."""
    contribution_learning_rate: float = 0.01
    """Step size of c, g and b (our choice: that of the value function; the authors have one loss and one optimiser)."""
    head_width: int = eqx.field(static=True, default=128)
    """Units of the two layers of c, g and b each, where they are networks (authors' code)."""
    network: NetworkSpec = eqx.field(static=True, default=NetworkSpec())
    """Sizes of networks (paper, KtD appendix)."""

    needs_whole_episodes: ClassVar[str] = "its rewards are explained by all states since the beginning of the episode"
    initial_carry = no_memory
    policy = logits_of_policy
    remember = nothing_to_remember

    @property
    def episodes(self) -> int:
        """How many episodes each update learns from."""
        return self.inner.episodes

    @property
    def contribution_optimiser(self) -> Optimiser:
        """Trains c, g and b."""
        return self.inner.build_optimiser(self.contribution_learning_rate)

    def init(self, key: Key[Array, ""], env: Environment) -> SyntheticReturnsLearner:
        """A nearly uniform policy, a fresh value function, and states that contribute nothing."""
        policy = policy_for(key, env.spec, self.network, self.inner.initial_scale)
        value = value_for(jax.random.fold_in(key, 1), env.spec, self.network)
        contribution = contribution_for(jax.random.fold_in(key, 2), env.spec, self.network, self.head_width)
        return SyntheticReturnsLearner(
            self.inner.trained_policy(policy),
            self.inner.trained_value(value),
            Trained(contribution, self.contribution_optimiser.init(contribution)),
        )

    def learn(
        self, learner: SyntheticReturnsLearner, trajectory: Trajectory
    ) -> tuple[SyntheticReturnsLearner, tuple[()]]:
        """One step of A2C on augmented rewards, one step of c, g and b towards the rewards as they are."""
        augmented = self._augmented(learner, trajectory)
        advantages, values = self._advantages(learner, augmented)
        gradients = jax.grad(contribution_loss)(learner.contribution.parameters, trajectory)
        learner = SyntheticReturnsLearner(
            policy=self.inner.improve_policy(learner.policy, trajectory, self.inner.prepare(advantages, trajectory)),
            value=self.inner.improve_value(learner.value, trajectory, advantages + values[:, :-1]),
            contribution=learner.contribution.step(self.contribution_optimiser, gradients),
        )
        return learner, ()

    def credit(self, learner: SyntheticReturnsLearner, trajectory: Trajectory) -> Credit:
        """What the actions of a batch are credited with: TD errors of augmented rewards, weighed by (γλ)^(k−t)."""
        augmented = self._augmented(learner, trajectory)
        advantages, values = self._advantages(learner, augmented)
        discounts = self.inner.discounts(trajectory)
        errors = jax.vmap(td_errors)(augmented.rewards, values, discounts, trajectory.valid)
        weights = exponential_weights(errors.shape[1], self.inner.discount, self.lambda_)
        return Credit(advantages, jnp.broadcast_to(weights, (*errors.shape, errors.shape[1])), errors)

    def _augmented(self, learner: SyntheticReturnsLearner, trajectory: Trajectory) -> Trajectory:
        later = _known(learner.contribution.parameters, trajectory).later
        rewards = jax.vmap(synthetic_rewards, in_axes=(0, 0, None, None, 0))(
            trajectory.rewards, later, self.synthetic_weight, self.reward_weight, trajectory.valid
        )
        return dataclasses.replace(trajectory, rewards=rewards)

    def _advantages(
        self, learner: SyntheticReturnsLearner, augmented: Trajectory
    ) -> tuple[Float[Array, "B T"], Float[Array, "B T_plus_1"]]:
        values = over_steps(learner.value.parameters, augmented.observations)
        advantages = jax.vmap(lambda_advantages, in_axes=(0, 0, 0, None, 0))(
            augmented.rewards, values, self.inner.discounts(augmented), self.lambda_, augmented.valid
        )
        return advantages, values


def contribution_loss(contribution: Callable, trajectory: Trajectory) -> Float[Array, ""]:
    """Half the mean squared error between rewards and what earlier states make of them."""
    known = _known(contribution, trajectory)
    predicted = jax.vmap(associated_rewards)(known.later, known.gate, known.here, trajectory.valid)
    rewards = jnp.where(trajectory.valid, trajectory.rewards, 0.0)
    return mean_over_valid(0.5 * jnp.square(rewards - predicted), trajectory.valid)


def _known(contribution: Callable, trajectory: Trajectory) -> Contribution:
    """c, g and b of S_0 … S_{T−1}, the states that actions were taken in."""
    states = jax.tree.map(lambda x: x[:, :-1], trajectory.observations)
    known: Contribution = jax.vmap(jax.vmap(contribution))(states)
    return known
