"""The two loops that all methods share: how a credit moves policy and values, and how a metagradient moves η."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from paircredit.errors import unknown_name
from paircredit.estimators import discounted_returns, lambda_advantages, standardise
from paircredit.metagradient.optimisers import Differentiate, Optimiser, adam, apply_updates, rmsprop, sgd
from paircredit.settings import setting
from paircredit.types import PyTree, Trajectory

ILLEGAL_LOGIT = -1e9
SCOPE = "part:"
"""Begins the names of parts of an update, so that profiles find them among other names."""


def part(name: str) -> AbstractContextManager[None]:
    """What is traced within belongs to this part of an update; parts may lie within parts."""
    return jax.named_scope(SCOPE + name)


def over_steps(function: Callable, observations: PyTree) -> Array:
    """Apply a function of one observation to observations with batch and time axes."""
    return jax.vmap(jax.vmap(function))(observations)


def legal_log_probs(logits: Float[Array, "*batch A"], legal: Bool[Array, "*batch A"]) -> Float[Array, "*batch A"]:
    """Log-probabilities of the actions; illegal ones get a probability of exactly 0."""
    return jax.nn.log_softmax(jnp.where(legal, logits, ILLEGAL_LOGIT))


def mean_over_valid(x: Float[Array, "*batch T"], valid: Bool[Array, "*batch T"]) -> Float[Array, ""]:
    """The mean over the steps that belong to episodes."""
    return jnp.sum(jnp.where(valid, x, 0.0)) / jnp.maximum(jnp.sum(valid).astype(x.dtype), 1.0)


def policy_gradient_loss(
    policy: Callable, trajectory: Trajectory, advantages: Float[Array, "B T"], entropy_cost: float | Array
) -> Float[Array, ""]:
    """−mean_t [Ψ_t log π(A_t|S_t) + β H(π(·|S_t))], linear in the advantages Ψ, which may be anything on padding."""
    states = jax.tree.map(lambda x: x[:, :-1], trajectory.observations)
    return -mean_over_valid(
        policy_terms(over_steps(policy, states), trajectory, advantages, entropy_cost), trajectory.valid
    )


def policy_terms(
    logits: Float[Array, "B T A"], trajectory: Trajectory, advantages: Float[Array, "B T"], entropy_cost: float | Array
) -> Float[Array, "B T"]:
    """Ψ_t log π(A_t) + β H(π_t) for every step."""
    log_probs = legal_log_probs(logits, trajectory.legal)
    taken = jnp.take_along_axis(log_probs, trajectory.actions[..., None], axis=-1)[..., 0]
    entropy = -jnp.sum(jnp.where(trajectory.legal, jnp.exp(log_probs) * log_probs, 0.0), axis=-1)
    return jnp.where(trajectory.valid, advantages, 0.0) * taken + entropy_cost * entropy


class Trained(eqx.Module):
    """Parameters and the state of the optimiser that trains them."""

    parameters: PyTree
    state: PyTree

    @classmethod
    def fresh(cls, parameters: PyTree, optimiser: Optimiser) -> Trained:
        """Parameters at the start of their training."""
        return cls(parameters, optimiser.init(parameters))

    def step(self, optimiser: Optimiser, gradients: PyTree) -> Trained:
        updates, state = optimiser.update(gradients, self.state)
        return Trained(apply_updates(self.parameters, updates), state)


class InnerLoop(eqx.Module):
    """Hyperparameters of policy and value learning."""

    learning_rate: float = setting(
        0.01,
        "Step size of the policy",
        "paper: DAG 0.01, the best of 0.1, 0.01, 0.001; Key-to-Door 2e-4; bsuite 3e-4; Atari 7e-4",
        at_least=0,
    )
    value_learning_rate: float = setting(
        0.01, "Step size of the value functions", "paper: that of the policy", at_least=0
    )
    discount: float = setting(
        1.0, "γ", "paper: DAG 1, Key-to-Door 0.998, Atari 0.99; bsuite is not told", at_least=0, at_most=1
    )
    entropy_cost: float = setting(
        0.001, "Weight β of the entropy bonus", "paper: DAG 0.001, Key-to-Door and bsuite 0.05, Atari 0.01"
    )
    second_moment_decay: float = setting(
        0.999, "β2 of Adam, decay of RMSProp", "paper: 0.999, on Atari 0.99; β1 is 0", at_least=0, below=1
    )
    epsilon: float = setting(1e-8, "ε of Adam and RMSProp", "paper: 1e-8, on Atari 1e-5", at_least=0)
    epsilon_root: float = setting(
        0.0,
        "Added inside the root of Adam; bounds the derivative of a step at gradients near 0",
        "our switch, see docs/methods/choices.md#what-a-metagradient-sees-of-an-optimiser-step",
        at_least=0,
    )
    clip_norm: float | None = setting(
        None, "Largest global norm of a gradient; none on the DAG", "paper: 0.5 on Atari", above=0
    )
    value_cost: float = setting(
        0.5,
        "Weight of the squared error of the values, where they are trained together with the policy",
        "paper, Atari",
        at_least=0,
    )
    value_lambda: float = setting(
        1.0,
        "λ of the return that the value function of the regular return follows, where a method has no λ of its own",
        "paper: on Atari the inner loop is set as A2C, whose λ is 0.95",
        at_least=0,
        at_most=1,
    )
    initial_scale: float = setting(
        0.01,
        "Deviation of the initial policy logits",
        "the paper says random; our choice, see docs/methods/choices.md#initial-policy-logits",
    )
    value_scale: float | None = setting(
        None,
        "Deviation of the values that a table starts with; left out, they are 0",
        "our choice; the paper says random and not how, see docs/methods/choices.md#initial-values",
        at_least=0,
    )
    episodes: int = setting(
        8,
        "Whole episodes per update, or actors",
        "paper: DAG 8, Key-to-Door 16, bsuite 1; Atari is not told",
        at_least=1,
    )
    optimiser: Literal["adam", "rmsprop", "sgd"] = setting(
        "adam", "Inner optimiser", "paper: Adam with β1 = 0, on Atari RMSProp"
    )
    epsilon_in_root: bool = setting(
        True,
        "Whether RMSProp adds ε inside the root (TensorFlow, optax) or outside it (PyTorch)",
        "the paper does not say; it decides how fast Atari is learned, see docs/reproduction.md#rmsprop-on-atari",
    )
    differentiate: Differentiate = setting(
        "everything",
        "What a metagradient sees of an optimiser step",
        "the paper does not say; see docs/methods/choices.md#what-a-metagradient-sees-of-an-optimiser-step",
    )
    standardise: bool = setting(False, "Standardise advantages over the batch", "paper: in Key-to-Door only")
    differentiate_statistics: bool = setting(
        False,
        "Let metagradients pass through mean and deviation of a standardisation",
        "our choice, see docs/methods/choices.md#standardisation",
    )

    def build_optimiser(self, learning_rate: float | Array) -> Optimiser:
        shared: dict[str, Any] = {"clip_norm": self.clip_norm, "differentiate": self.differentiate}
        decay, eps = self.second_moment_decay, self.epsilon
        if self.optimiser == "sgd":
            return sgd(learning_rate, **shared)
        if self.optimiser == "rmsprop":
            return rmsprop(learning_rate, decay=decay, eps=eps, eps_in_root=self.epsilon_in_root, **shared)
        if self.optimiser == "adam":
            return adam(learning_rate, b2=decay, eps=eps, eps_root=self.epsilon_root, **shared)
        raise unknown_name("optimiser", self.optimiser, ("adam", "rmsprop", "sgd"))

    @property
    def policy_optimiser(self) -> Optimiser:
        """Trains the policy; metagradients pass through it."""
        return self.build_optimiser(self.learning_rate)

    @property
    def value_optimiser(self) -> Optimiser:
        """Trains value functions; metagradients do not pass through it."""
        return self.build_optimiser(self.value_learning_rate)

    def discounts(self, trajectory: Trajectory) -> Float[Array, "B T"]:
        """γ on every transition, 0 where the episode terminated."""
        return jnp.where(trajectory.terminated, 0.0, jnp.asarray(self.discount, dtype=trajectory.rewards.dtype))

    def regular_returns(self, values: Float[Array, "B T_plus_1"], trajectory: Trajectory) -> Float[Array, "B T"]:
        """λ-returns with `value_lambda`, which is 1 for Monte Carlo returns.

        An episode that was cut is continued by the value of its final observation.
        """
        discounts = self.discounts(trajectory)
        lambda_ = jnp.asarray(self.value_lambda, dtype=discounts.dtype)
        bootstrap = jnp.where(trajectory.truncated, 1.0, 1.0 - lambda_) * discounts * values[:, 1:]
        return jax.vmap(discounted_returns)(trajectory.rewards + bootstrap, lambda_ * discounts, trajectory.valid)

    def prepare(
        self, advantages: Float[Array, "B T"], trajectory: Trajectory, statistics_of: Array | None = None
    ) -> Float[Array, "B T"]:
        """The advantages as the policy gradient takes them: standardised or as they are."""
        if not self.standardise:
            return advantages
        return standardise(
            advantages,
            trajectory.valid,
            differentiate_statistics=self.differentiate_statistics,
            statistics_of=None if self.differentiate_statistics else statistics_of,
        )

    def policy_loss(
        self, policy: Any, trajectory: Trajectory, advantages: Array, targets: Array | None = None
    ) -> Float[Array, ""]:
        """What the policy descends; with targets the value function on the same network, too."""
        loss = policy_gradient_loss(policy, trajectory, advantages, self.entropy_cost)
        if targets is None:
            return loss
        errors = over_steps(policy.critic, trajectory.observations)[:, :-1] - jax.lax.stop_gradient(targets)
        return loss + self.value_cost * mean_over_valid(jnp.square(errors), trajectory.valid)

    def improve_value(self, value: Trained, trajectory: Trajectory, targets: Float[Array, "B T"]) -> Trained:
        """One step of the squared error between values and targets (constants).

        The values of all T+1 observations are computed, as for an advantage, so that a compiler does it once for both.
        """
        targets = jax.lax.stop_gradient(targets)

        def loss(parameters: Callable) -> Float[Array, ""]:
            values = over_steps(parameters, trajectory.observations)[:, :-1]
            return mean_over_valid(0.5 * jnp.square(values - targets), trajectory.valid)

        with part("values"):
            return value.step(self.value_optimiser, jax.grad(loss)(value.parameters))


class OuterData(eqx.Module):
    """A batch collected after the inner update, with its regular advantages (constants)."""

    trajectory: Trajectory
    advantages: Float[Array, "B T"]


class OuterLoop(eqx.Module):
    """Hyperparameters of weight learning."""

    learning_rate: float = setting(
        0.01, "Step size of η", "paper: DAG 0.01, Key-to-Door 2e-5, bsuite and Atari 3e-5", at_least=0
    )
    clip_norm: float | None = setting(
        0.5,
        "Largest global norm of the metagradient",
        "paper: DAG 0.5, bsuite 0.01, Atari 0.05; none in Key-to-Door",
        above=0,
    )
    lambda_: float = setting(
        1.0,
        "λ of the regular advantage that evaluates the weights",
        "the paper does not say; see docs/methods/choices.md#outer-λ",
        at_least=0,
        at_most=1,
    )
    entropy_cost: float = setting(0.0, "Entropy bonus in the outer loss", "paper: on Atari only")
    second_moment_decay: float = setting(0.999, "β2 of the outer Adam", "paper; β1 is 0", at_least=0, below=1)
    epsilon: float = setting(1e-8, "ε of the outer Adam", "paper", at_least=0)
    initial_scale: float = setting(0.01, "η starts uniform in ± this", "paper, DAG appendix")

    @property
    def optimiser(self) -> Optimiser:
        """Adam after a clip of the global norm."""
        return adam(self.learning_rate, b2=self.second_moment_decay, eps=self.epsilon, clip_norm=self.clip_norm)

    def data(self, inner: InnerLoop, value: Callable, trajectory: Trajectory) -> OuterData:
        """Regular λ-advantages of a batch, with the value function of the regular return."""
        values = over_steps(value, trajectory.observations)
        advantages = jax.vmap(lambda_advantages, in_axes=(0, 0, 0, None, 0))(
            trajectory.rewards, values, inner.discounts(trajectory), self.lambda_, trajectory.valid
        )
        return OuterData(trajectory, inner.prepare(advantages, trajectory))

    def loss(self, policy: Callable, data: OuterData) -> Float[Array, ""]:
        return policy_gradient_loss(policy, data.trajectory, data.advantages, self.entropy_cost)
