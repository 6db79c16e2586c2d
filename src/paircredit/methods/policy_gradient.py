"""The policy-gradient loss, on batches of padded episodes."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from paircredit.types import PyTree, Trajectory

ILLEGAL_LOGIT = -1e9


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
    """−mean_t [Ψ_t log π(A_t|S_t) + β H(π(·|S_t))], linear in the advantages.

    Args:
        policy: observation → logits.
        trajectory: a batch of episodes.
        advantages: Ψ; on padding it may be anything.
        entropy_cost: β.
    """
    states = jax.tree.map(lambda x: x[:, :-1], trajectory.observations)
    log_probs = legal_log_probs(over_steps(policy, states), trajectory.legal)
    taken = jnp.take_along_axis(log_probs, trajectory.actions[..., None], axis=-1)[..., 0]
    entropy = -jnp.sum(jnp.where(trajectory.legal, jnp.exp(log_probs) * log_probs, 0.0), axis=-1)
    credited = jnp.where(trajectory.valid, advantages, 0.0)
    return -mean_over_valid(credited * taken + entropy_cost * entropy, trajectory.valid)
