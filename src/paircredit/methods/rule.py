"""What a method is, and what a credit rule adds to the one actor-critic.

A method is a frozen dataclass of hyperparameters with pure functions. Floats among the hyperparameters are traced, so
that members with different settings train in one program; what shapes the program is static.

A rule is its credit, and what learns beside policy and values. It speaks of one trajectory, as the paper does; the
agent maps it over the batch. Everything in `Experience` is a constant: η enters the credit through `weights` and
nowhere else, which is what makes the metagradient first order.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, runtime_checkable

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from paircredit.envs.protocol import Environment
from paircredit.estimators import lambda_advantages, td_errors
from paircredit.metagradient.problem import MetaProblem
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


class Method(Protocol):
    """Anything with these members trains in the shared loop; `ActorCritic` is one, for any credit rule."""

    @property
    def episodes(self) -> int:
        """How many episodes each update learns from."""

    @property
    def whole_episodes(self) -> str:
        """Why it cannot learn from segments of episodes (it is then refused where rollouts are); empty if it can."""

    @property
    def learns_weights(self) -> bool:
        """Whether it is a `MetaMethod`, whose weights learn by metagradient."""

    @property
    def setting_of_memory(self) -> str:
        """The setting that decides how much it stores, for advice where memory is short; empty if it stores nothing."""

    def init(self, key: Key[Array, ""], env: Environment) -> Any:
        """A fresh learner: parameters and optimiser states."""

    def initial_carry(self, learner: Any) -> PyTree:
        """What an agent with memory carries into the first step; () for one without."""

    def policy(self, learner: Any, carry: PyTree, observation: PyTree) -> tuple[Float[Array, " A"], PyTree]:
        """Logits of the actions, and the carry for the next step. The rollout does the sampling."""

    def remember(self, carry: PyTree, action: Int[Array, ""], reward: Float[Array, ""]) -> PyTree:
        """The carry after an action was taken and its reward came, for an agent that sees them at its next step."""

    def learn(self, learner: Any, trajectory: Trajectory) -> tuple[Any, PyTree]:
        """One update of policy and value functions on a batch of episodes.

        Returns the new learner and what a metagradient through this update needs (() where there is none).
        """

    def credit(self, learner: Any, trajectory: Trajectory) -> Credit:
        """What the actions of a batch are credited with."""


class MetaMethod(Method, Protocol):
    """A method whose learner has `weights` that are learned by metagradient."""

    def problem(self) -> MetaProblem:
        """The pieces of the metagradient."""

    def outer_data(self, learner: Any, trajectory: Trajectory) -> PyTree:
        """What the outer loss needs from a batch collected with the learner's policy."""

    def improve_weights(self, learner: Any, gradient: PyTree) -> Any:
        """The learner after one outer update."""


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

    def credit(self, weights: Any, experience: Experience) -> Credit:
        """The credit of one trajectory."""


@runtime_checkable
class LearningRule(Protocol):
    """A rule with parts that learn otherwise than by metagradient: a predictor, a regression."""

    def start(self, agent: ActorCritic, key: Key[Array, ""], env: Environment) -> PyTree:
        """The fresh parts, `learner.own`. Fold 2 or more into the key: 0 and 1 are taken."""

    def look(self, agent: ActorCritic, learner: Learner, trajectory: Trajectory) -> PyTree:
        """What the parts, as they are, see in a batch: `experience.own`, with a leading axis for the batch."""

    def learn(self, agent: ActorCritic, learner: Learner, trajectory: Trajectory) -> tuple[PyTree, PyTree]:
        """One update: the parts afterwards, and what was seen in the batch."""


def lambda_credit(
    trajectory: Trajectory,
    values: Float[Array, " T_plus_1"],
    discounts: Float[Array, " T"],
    lambda_: Float[Array, " T"] | float | Array,
) -> Credit:
    """The λ-estimator as credit: TD errors of the trajectory's rewards, weighed by products of γλ.

    Of several λ `lambda_[k]` belongs to S_{k+1}.
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
