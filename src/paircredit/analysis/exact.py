"""Exact answers for finite environments, by dynamic programming.

Everything here is differentiable in the logits, so the exact policy gradient is `jax.grad` of the exact return.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from paircredit.envs.protocol import TabularModel
from paircredit.methods.loops import legal_log_probs


def policy_probabilities(model: TabularModel, logits: Float[Array, "S A"]) -> Float[Array, "S A"]:
    """π(a|s) for every state; illegal actions have probability 0."""
    return jnp.exp(legal_log_probs(logits, model.legal))


def policy_values(
    model: TabularModel, logits: Float[Array, "S A"], discount: float | Array = 1.0
) -> Float[Array, " S"]:
    """V^π(s), the expected return from every state."""
    probabilities = policy_probabilities(model, logits)

    def backup(values: Array) -> Array:
        return jnp.sum(probabilities * (model.reward_mean + discount * values[model.next_state]), axis=-1)

    return _backed_up(model, backup, jnp.zeros(model.next_state.shape[:1], dtype=logits.dtype))


def _backed_up(model: TabularModel, backup: Callable[[Array], Array], start: Array) -> Array:
    """What `backup` makes of nothing after as many steps as an episode may have."""
    return jax.lax.scan(lambda values, _: (backup(values), None), start, None, length=model.horizon)[0]


def expected_return(
    model: TabularModel, logits: Float[Array, "S A"], discount: float | Array = 1.0
) -> Float[Array, ""]:
    """J(θ): the expected return of an episode."""
    return policy_values(model, logits, discount)[model.start]


def policy_gradient(
    model: TabularModel, logits: Float[Array, "S A"], discount: float | Array = 1.0
) -> Float[Array, "S A"]:
    """∇_θ J(θ), exactly; what every estimator estimates."""
    return jax.grad(lambda table: expected_return(model, table, discount))(logits)


def optimal_values(model: TabularModel, discount: float = 1.0) -> Float[Array, " S"]:
    """V*(s), the best expected return from every state."""

    def backup(values: Array) -> Array:
        following = model.reward_mean + discount * values[model.next_state]
        return jnp.max(jnp.where(model.legal, following, -jnp.inf), axis=-1)

    return _backed_up(model, backup, jnp.zeros(model.next_state.shape[:1], dtype=model.reward_mean.dtype))


def expected_reward_on_entry(model: TabularModel, logits: Float[Array, "S A"]) -> Float[Array, "S S"]:
    """E[Σ_k R_k 1(S_k = j) | S_t = i]: what is paid on entering j, seen from i.

    The undiscounted pairwise weighted value of any table w is Σ_j w[i, j] of this.
    """
    probabilities = policy_probabilities(model, logits)
    states = model.next_state.shape[0]
    stays = model.next_state == jnp.arange(states, dtype=model.next_state.dtype)[:, None]
    entering = jax.nn.one_hot(model.next_state, states, dtype=logits.dtype)

    def backup(paid: Array) -> Array:
        now = model.reward_mean[:, :, None] * entering
        later = jnp.where(stays[:, :, None], 0.0, paid[model.next_state])
        return jnp.sum(probabilities[:, :, None] * (now + later), axis=1)

    return _backed_up(model, backup, jnp.zeros((states, states), dtype=logits.dtype))


def weighted_values(
    model: TabularModel, logits: Float[Array, "S A"], weights: Float[Array, "S S"]
) -> Float[Array, " S"]:
    """V^PWR(s) = E[Σ_k w(s, S_k) R_k | S_t = s], the exact baseline of pairwise weighted rewards."""
    return jnp.sum(weights * expected_reward_on_entry(model, logits), axis=-1)
