"""Synthetic returns: rewards explained by the states before them, and paid where those states are.

One trajectory at a time; batch with `jax.vmap`. `rewards[t]` is what followed the action in S_t, and `contributions[t]`
is c(S_t). Padding is never read: it may hold NaN.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from paircredit.estimators.shapes import expect_shape, trajectory_length, valid_steps


def associated_rewards(
    contributions: Float[Array, " T"],
    gates: Float[Array, " T"],
    biases: Float[Array, " T"],
    valid: Bool[Array, " T"] | None = None,
) -> Float[Array, " T"]:
    """g(S_t) Σ_{k<t} c(S_k) + b(S_t), a prediction of the reward that follows S_t from the states before it.

    Args:
        contributions: c of every state, what it adds to rewards that come later.
        gates: g of every state, how much of that arrives there.
        biases: b of every state, what arrives there whatever came before.
        valid: padding mask; padded steps add nothing and give 0.
    """
    length = trajectory_length("contributions", contributions)
    expect_shape("gates", gates, (length,))
    expect_shape("biases", biases, (length,))
    mask = valid_steps(valid, length)
    own = jnp.where(mask, contributions, 0.0)
    before = jnp.cumsum(own) - own
    return jnp.where(mask, gates, 0.0) * before + jnp.where(mask, biases, 0.0)


def synthetic_rewards(
    rewards: Float[Array, " T"],
    contributions: Float[Array, " T"],
    synthetic_weight: float | Float[Array, ""],
    reward_weight: float | Float[Array, ""] = 1.0,
    valid: Bool[Array, " T"] | None = None,
) -> Float[Array, " T"]:
    """α c(S_t) + β r_t, the rewards that an agent learns from.

    Args:
        rewards: the rewards of the environment.
        contributions: c of every state.
        synthetic_weight: α.
        reward_weight: β.
        valid: padding mask; padded steps give 0.
    """
    length = trajectory_length("rewards", rewards)
    expect_shape("contributions", contributions, (length,))
    mask = valid_steps(valid, length)
    return synthetic_weight * jnp.where(mask, contributions, 0.0) + reward_weight * jnp.where(mask, rewards, 0.0)
