"""All pairs of a short episode at once, with the derivative by hand; written for a CPU.

A compiler for CPUs computes a sum over pairs one channel at a time, and computes what is summed again for each sum;
left to JAX, the derivative is a dozen such sums and takes ten times as long as the logits. Here sums are matrix
products where that is faster, and few are needed: two sums over the pairs give the derivatives of scale, shift, out
and normalisation.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from paircredit.weights.pairs.problem import NORMALISER_EPSILON, PairParameters, pair_count, pair_mask


@jax.custom_vjp
def whole_pair_logits(parameters: PairParameters, valid: Bool[Array, " T"]) -> Float[Array, "T T"]:
    """The logits z of all pairs, holding [T, T, D] arrays."""
    return _forward(parameters, valid)[0]


def _forward(parameters: PairParameters, valid: Array) -> tuple[Array, tuple]:
    p, steps = parameters, valid.shape[0]
    rows, columns = _valid_only(p, valid)
    mask = pair_mask(valid).reshape(-1)
    weight = mask.astype(p.rows.dtype) / pair_count(valid, p.rows.dtype)
    fused = (rows[:, None] * columns[None, :] * by_lag(p.lags)).reshape(steps * steps, -1)
    centred = fused - weight @ fused
    deviation = jnp.sqrt(weight @ jnp.square(centred) + NORMALISER_EPSILON)
    x = jax.lax.optimization_barrier(centred / deviation)  # else it is computed again wherever it is used
    z = jnp.where(mask, jax.nn.relu(p.scale * x + p.shift) @ p.out, 0.0)
    return z.reshape(steps, steps), (parameters, valid, x, deviation)


def _backward(kept: tuple, cotangent: Float[Array, "T T"]) -> tuple[PairParameters, np.ndarray]:
    p, valid, x, deviation = kept
    steps = valid.shape[0]
    rows, columns = _valid_only(p, valid)
    mask = pair_mask(valid).reshape(-1)
    dz = jnp.where(mask, cotangent.reshape(-1), 0.0)
    active = (p.scale * x + p.shift > 0).astype(x.dtype)
    plain, with_x = dz @ active, dz @ (active * x)
    count = pair_count(valid, x.dtype)
    through = (p.scale * p.out / deviation) * (dz[:, None] * active - plain / count - x * (with_x / count))
    d_fused = jax.lax.optimization_barrier(jnp.where(mask[:, None], through, 0.0)).reshape(steps, steps, -1)
    with_lags = d_fused * by_lag(p.lags)
    gradient = PairParameters(
        rows=jnp.einsum("tkd,kd->td", with_lags, columns),
        columns=jnp.einsum("tkd,td->kd", with_lags, rows),
        lags=sum_by_lag(d_fused * rows[:, None] * columns[None, :]),
        scale=p.out * with_x,
        shift=p.out * plain,
        out=p.scale * with_x + p.shift * plain,
    )
    return gradient, np.zeros(valid.shape, dtype=jax.dtypes.float0)


def _valid_only(parameters: PairParameters, valid: Array) -> tuple[Array, Array]:
    """Rows and columns with zeros for padding, which may hold anything."""
    keep = valid[:, None]
    return jnp.where(keep, parameters.rows, 0.0), jnp.where(keep, parameters.columns, 0.0)


whole_pair_logits.defvjp(_forward, _backward)


def by_lag(lags: Float[Array, "T D"]) -> Float[Array, "T T D"]:
    """Row t has the embedding of lag k − t in place k, and zeros below the diagonal.

    Each row is the one before it, moved by one: T copies of twice as many entries, read in rows of one less.
    """
    steps, width = lags.shape
    copies = jnp.broadcast_to(jnp.pad(lags, ((0, steps), (0, 0))), (steps, 2 * steps, width))
    return copies.reshape(-1, width)[: steps * (2 * steps - 1)].reshape(steps, 2 * steps - 1, width)[:, :steps]


def sum_by_lag(pairs: Float[Array, "T T D"]) -> Float[Array, "T D"]:
    """Entry l is the sum over the pairs of lag l; the transpose of `by_lag`."""
    steps, width = pairs.shape[0], pairs.shape[2]
    flat = jnp.pad(pairs, ((0, 0), (0, steps - 1), (0, 0))).reshape(-1, width)
    return jnp.pad(flat, ((0, steps), (0, 0))).reshape(steps, 2 * steps, width).sum(axis=0)[:steps]
