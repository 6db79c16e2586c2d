"""Standardised advantages, with a say in what is differentiated."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from paircredit.estimators.shapes import expect_shape


def standardise(
    x: Float[Array, "*shape"],
    valid: Bool[Array, "*shape"] | None = None,
    *,
    epsilon: float = 1e-8,
    differentiate_statistics: bool = False,
    statistics_of: Float[Array, "*shape"] | None = None,
) -> Float[Array, "*shape"]:
    """(x − mean) / (deviation + ε) over all valid entries, batch axes included; padding becomes 0.

    Args:
        x: advantages of a trajectory or of a whole batch.
        valid: which entries count.
        epsilon: added to the deviation, so that a constant x gives 0.
        differentiate_statistics: let gradients pass through mean and deviation. Off, only the numerator carries
            them, which keeps metagradients stable.
        statistics_of: take mean and deviation from this array (as a constant) and not from x. A finite-difference
            check holds detached statistics fixed this way.
    """
    mask = jnp.ones(x.shape, dtype=bool) if valid is None else valid
    expect_shape("valid", mask, x.shape)
    source = x if statistics_of is None else statistics_of
    expect_shape("statistics_of", source, x.shape)
    if not differentiate_statistics or statistics_of is not None:
        source = jax.lax.stop_gradient(source)
    count = jnp.maximum(jnp.sum(jnp.where(mask, 1.0, 0.0).astype(x.dtype)), 1.0)
    # Everything is measured from one of the entries, so that the mean of equal numbers is that number exactly.
    origin = jax.lax.stop_gradient(jnp.max(jnp.where(mask, source, -jnp.inf)))
    origin = jnp.where(jnp.any(mask), origin, 0.0)
    shifted = jnp.where(mask, source - origin, 0.0)
    mean = jnp.sum(shifted) / count
    variance = jnp.sum(jnp.square(jnp.where(mask, shifted - mean, 0.0))) / count
    positive = variance > 0
    deviation = jnp.where(positive, jnp.sqrt(jnp.where(positive, variance, 1.0)), 0.0)
    return jnp.where(mask, (jnp.where(mask, x - origin, 0.0) - mean) / (deviation + epsilon), 0.0)
