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
from paircredit.estimators import associated_rewards, synthetic_rewards
from paircredit.metagradient.optimisers import Optimiser
from paircredit.methods.agent import ActorCritic, Learner
from paircredit.methods.loops import Trained, mean_over_valid
from paircredit.methods.rule import Credit, Experience, Needs, lambda_credit
from paircredit.networks.state_functions import Contribution, contribution_for
from paircredit.settings import setting
from paircredit.types import Trajectory


class Associations(eqx.Module):
    """The functions c, g and b."""

    contribution: Trained


class SyntheticReturns(eqx.Module):
    """A2C on the rewards α c(S_t) + β r_t, where r_t ≈ g(S_t) Σ_{k<t} c(S_k) + b(S_t) is learned by regression."""

    lambda_: float = setting(
        1.0,
        "λ of the A2C that learns from the rewards",
        "its own: paper, DAG appendix; 0.5 in Key-to-Door",
        at_least=0,
        at_most=1,
    )
    synthetic_weight: float = setting(
        0.3, "α, the weight of contributions", "sample configuration of the authors' code"
    )
    reward_weight: float = setting(
        1.0, "β, the weight of the environment's rewards", "sample configuration of the authors' code"
    )
    contribution_learning_rate: float = setting(
        0.01,
        "Step size of c, g and b",
        "our choice: that of the value function; the authors have one loss and one optimiser",
        at_least=0,
    )
    head_width: int = setting(
        128, "Units of the two layers of c, g and b each, where they are networks", "authors' code", at_least=1
    )

    needs: ClassVar[Needs] = Needs(
        whole_episodes="its rewards are explained by all states since the beginning of the episode"
    )

    def weights(self, agent: ActorCritic, key: Key[Array, ""], env: Environment) -> None:
        """Nothing is weighed that a metagradient could improve."""

    def start(self, agent: ActorCritic, key: Key[Array, ""], env: Environment) -> Associations:
        """States that contribute nothing."""
        contribution = contribution_for(jax.random.fold_in(key, 2), env.spec, agent.network, self.head_width)
        return Associations(Trained.fresh(contribution, self._optimiser(agent)))

    def look(self, agent: ActorCritic, learner: Learner, trajectory: Trajectory) -> Float[Array, "B T"]:
        """The augmented rewards of a batch."""
        later = _known(learner.own.contribution.parameters, trajectory).later
        return jax.vmap(synthetic_rewards, in_axes=(0, 0, None, None, 0))(
            trajectory.rewards, later, self.synthetic_weight, self.reward_weight, trajectory.valid
        )

    def learn(
        self, agent: ActorCritic, learner: Learner, trajectory: Trajectory
    ) -> tuple[Associations, Float[Array, "B T"]]:
        """One step of c, g and b towards the rewards as they are; the batch is augmented by those from before it."""
        contribution: Trained = learner.own.contribution
        gradients = jax.grad(contribution_loss)(contribution.parameters, trajectory)
        after = contribution.step(self._optimiser(agent), gradients)
        return Associations(after), self.look(agent, learner, trajectory)

    def credit(self, weights: None, experience: Experience) -> Credit:
        """TD errors of augmented rewards, weighed by (γλ)^(k−t)."""
        augmented = dataclasses.replace(experience.trajectory, rewards=experience.own)
        return lambda_credit(augmented, experience.values, experience.discounts, self.lambda_)

    def _optimiser(self, agent: ActorCritic) -> Optimiser:
        return agent.inner.build_optimiser(self.contribution_learning_rate)


def contribution_loss(contribution: Callable, trajectory: Trajectory) -> Float[Array, ""]:
    """Half the mean squared error between rewards and what earlier states make of them."""
    known = _known(contribution, trajectory)
    predicted = jax.vmap(associated_rewards)(known.later, known.gate, known.here, trajectory.valid)
    rewards = jnp.where(trajectory.valid, trajectory.rewards, 0.0)
    return mean_over_valid(0.5 * jnp.square(rewards - predicted), trajectory.valid)


def _known(contribution: Callable, trajectory: Trajectory) -> Contribution:
    """c, g and b of S_0 … S_{T−1}, the states that actions were taken in."""
    states = jax.tree.map(lambda x: x[:, :-1], trajectory.observations)
    return jax.vmap(jax.vmap(contribution))(states)
