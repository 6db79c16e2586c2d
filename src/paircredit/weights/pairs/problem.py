"""What every back end computes.

Per episode, for all pairs t ≤ k of valid steps, with rows, columns and lags already shifted by 1:

    h_tkd = row_td · column_kd · lag_(k−t)d              fuse
    x_tkd = (h_tkd − mean_d) / deviation_d               over the pairs of the episode
    z_tk  = Σ_d out_d · relu(scale_d · x_tkd + shift_d)  one number per pair

`lags[l]` belongs to the pair (t, k = t + l), whose time difference is l + 1. Entries of z that are no valid pair are 0.
"""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

NORMALISER_EPSILON = 1e-5
"""Added to the variance (the paper gives none)."""


class PairParameters(eqx.Module):
    """Embeddings of one episode and the parameters that turn their products into logits."""

    rows: Float[Array, "T D"]
    columns: Float[Array, "T D"]
    lags: Float[Array, "T D"]
    scale: Float[Array, " D"]
    shift: Float[Array, " D"]
    out: Float[Array, " D"]


def pair_mask(valid: Bool[Array, " T"]) -> Bool[Array, "T T"]:
    """The pairs t ≤ k of valid steps."""
    steps = jnp.arange(valid.shape[0])
    return (steps[None, :] >= steps[:, None]) & valid[:, None] & valid[None, :]


def pair_count(valid: Bool[Array, " T"], dtype: jnp.dtype) -> Float[Array, ""]:
    """How many pairs there are, at least 1."""
    steps = jnp.sum(valid).astype(dtype)
    return jnp.maximum(0.5 * steps * (steps + 1.0), 1.0)
