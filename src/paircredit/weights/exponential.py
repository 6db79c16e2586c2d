"""Weights that only look at the delay: the classical answer, as a pair weight function."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float


def exponential_weights(
    length: int, discount: float | Float[Array, ""], lambda_: float | Float[Array, ""] = 1.0
) -> Float[Array, "T T"]:
    """`weights[t, k]` = (γλ)^(k−t) for k ≥ t and 0 below the diagonal.

    `pwtd` with these weights is the λ-estimator; `pwr` with them and λ = 1 is Monte Carlo. Differentiable in both
    arguments, at 0 too.
    """
    decay = jnp.asarray(discount, dtype=float) * jnp.asarray(lambda_, dtype=float)
    powers = jnp.cumprod(jnp.concatenate([jnp.ones((1,)), jnp.broadcast_to(decay, (max(length - 1, 0),))]))
    lag = jnp.arange(length)[None, :] - jnp.arange(length)[:, None]
    return jnp.where(lag >= 0, powers[jnp.maximum(lag, 0)], 0.0)
