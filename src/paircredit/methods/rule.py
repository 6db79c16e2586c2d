"""What a method adds to the one actor-critic: its credit, and what learns beside policy and values.

A rule speaks of one trajectory, as the paper does; the agent maps it over the batch. Everything in `Experience` is a
constant: η enters the credit through `weights` and nowhere else, which is what makes the metagradient first order.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, runtime_checkable

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from paircredit.envs.protocol import Environment
from paircredit.estimators import lambda_advantages, td_errors
from paircredit.methods.loops import part
from paircredit.types import PyTree, Trajectory
from paircredit.weights import PairInputs, PairWeights
from paircredit.weights.tables import trace_weights

if TYPE_CHECKING:
    from paircredit.methods.agent import ActorCritic, Learner


class Credit(eqx.Module):
    """Ψ_t = Σ_k weights[t, k] · signal[k] − baseline_t, before any standardisation.

    Attributes:
        advantages: Ψ.
        weights: one per pair of steps; below the diagonal they mean nothing.
        signal: rewards or TD errors.
        baseline: what is subtracted from the weighted sum.
        weighted_return: what the value function `weighted_value` learns to predict, if the rule has one.
        regular_return: what the value function `value` learns to predict, if the rule has one.
    """

    advantages: Float[Array, "*batch T"]
    weights: Float[Array, "*batch T T"]
    signal: Float[Array, "*batch T"]
    baseline: Float[Array, "*batch T"]
    weighted_return: Float[Array, "*batch T"] | Any = None
    regular_return: Float[Array, "*batch T"] | Any = None

    def predicting(self, weighted: Array, regular: Array) -> Credit:
        """The same credit, with other returns for the value functions to predict."""
        return dataclasses.replace(self, weighted_return=weighted, regular_return=regular)


class Experience(eqx.Module):
    """A trajectory and what the learner made of it before the update.

    Attributes:
        trajectory: what happened.
        discounts: γ on every transition, 0 where the episode terminated.
        values: of the regular return; None for rules without such a value function.
        weighted_values: of the weighted return; None likewise.
        regular_returns: λ-returns with the inner loop's `value_lambda`; None where there are no `values`.
        features: what the value network's last layer sees, for rules that ask for it; None for tables.
        own: what a rule with parts of its own saw in the trajectory.
    """

    trajectory: Trajectory
    discounts: Float[Array, "*batch T"]
    values: Float[Array, "*batch T_plus_1"] | Any
    weighted_values: Float[Array, "*batch T_plus_1"] | Any
    regular_returns: Float[Array, "*batch T"] | Any
    features: Float[Array, "*batch T_plus_1 D"] | None
    own: PyTree = ()

    def pairs(self, weights: PairWeights, signal: Float[Array, " T"]) -> Float[Array, "T T"]:
        """The weight of every pair of steps, for a signal that is going to be weighed."""
        given = self.trajectory
        with part("weights"):
            return weights(PairInputs(given.observations, self.features, signal, given.valid, given.episode))


@dataclasses.dataclass(frozen=True)
class Needs:
    """What a rule needs of the agent.

    Attributes:
        values: its value functions: of the `regular` return, of the `weighted` one, or `both`.
        sharing: whether policy and value may be one network.
        features: whether its weights look at the value network's features.
        whole_episodes: why it cannot learn from segments of episodes; empty if it can.
        setting_of_memory: the setting that decides how much it stores, if it stores anything.
    """

    values: Literal["regular", "weighted", "both"] = "regular"
    sharing: bool = False
    features: bool = False
    whole_episodes: str = ""
    setting_of_memory: str = ""


class CreditRule(Protocol):
    """A section of the paper: how much an action gets of what comes later.

    A rule is an `equinox.Module` whose fields are its hyperparameters. On the command line and in specs they stand
    among those of the agent, so none may be called `rule`, `inner`, `outer`, `network` or `fixed_value`.
    """

    needs: ClassVar[Needs]

    def weights(self, agent: ActorCritic, key: Key[Array, ""], env: Environment) -> PyTree:
        """η, a fresh weight function; None for a rule without one. It is learned if the agent has an outer loop."""
        ...

    def credit(self, weights: Any, experience: Experience) -> Credit:
        """The credit of one trajectory."""
        ...


@runtime_checkable
class LearningRule(Protocol):
    """A rule with parts that learn otherwise than by metagradient: a predictor, a regression."""

    def start(self, agent: ActorCritic, key: Key[Array, ""], env: Environment) -> PyTree:
        """The fresh parts, `learner.own`. Fold 2 or more into the key: 0 and 1 are taken."""
        ...

    def look(self, agent: ActorCritic, learner: Learner, trajectory: Trajectory) -> PyTree:
        """What the parts, as they are, see in a batch: `experience.own`, with a leading axis for the batch."""
        ...

    def learn(self, agent: ActorCritic, learner: Learner, trajectory: Trajectory) -> tuple[PyTree, PyTree]:
        """One update: the parts afterwards, and what was seen in the batch."""
        ...


def lambda_credit(
    trajectory: Trajectory,
    values: Float[Array, " T_plus_1"],
    discounts: Float[Array, " T"],
    lambda_: Float[Array, " T"] | float | Array,
) -> Credit:
    """The λ-estimator as credit: TD errors, weighed by products of γλ.

    Args:
        trajectory: a trajectory with the rewards to be credited.
        values: of its T+1 observations.
        discounts: γ, 0 where the episode terminated.
        lambda_: λ, or one per step: `lambda_[k]` belongs to S_{k+1}.
    """
    rewards, valid = trajectory.rewards, trajectory.valid
    advantages = lambda_advantages(rewards, values, discounts, lambda_, valid)
    errors = td_errors(rewards, values, discounts, valid)
    weights = within_episodes(trace_weights(jnp.where(valid, discounts * lambda_, 0.0)), trajectory)
    return Credit(advantages, weights, errors, jnp.zeros_like(errors), regular_return=advantages + values[:-1])


def within_episodes(weights: Float[Array, "T T"], trajectory: Trajectory) -> Float[Array, "T T"]:
    """The weights, with 0 for pairs of steps of different episodes of a segment: these are part of no sum."""
    number = trajectory.episode
    if number is None:
        return weights
    return jnp.where(number[:, None] == number[None, :], weights, 0.0)
