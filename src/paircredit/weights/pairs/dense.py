"""The reference: every pair's vector in memory at once, derivatives by JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from paircredit.weights.pairs.problem import NORMALISER_EPSILON, PairParameters, pair_count, pair_mask


def dense_pair_logits(parameters: PairParameters, valid: Bool[Array, " T"]) -> Float[Array, "T T"]:
    """The logits z of all pairs, holding [T, T, D] arrays."""
    p = parameters
    steps = jnp.arange(valid.shape[0])
    lag = jnp.maximum(steps[None, :] - steps[:, None], 0)
    mask = pair_mask(valid)
    fused = p.rows[:, None] * p.columns[None, :] * p.lags[lag]
    count = pair_count(valid, fused.dtype)
    mean = jnp.sum(jnp.where(mask[..., None], fused, 0.0), axis=(0, 1)) / count
    centred = jnp.where(mask[..., None], fused - mean, 0.0)
    deviation = jnp.sqrt(jnp.sum(jnp.square(centred), axis=(0, 1)) / count + NORMALISER_EPSILON)
    hidden = jax.nn.relu(p.scale * centred / deviation + p.shift)
    return jnp.where(mask, hidden @ p.out, 0.0)
