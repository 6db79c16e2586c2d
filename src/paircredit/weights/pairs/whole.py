"""All pairs of a short episode at once, with the derivative by hand; written for a CPU.

A compiler for CPUs computes a sum over pairs one channel at a time, and what is summed again for each sum; left to JAX,
the derivative is a dozen such sums and takes ten times as long as the logits. Here pairs lie in one row, t ≤ k only,
and all that goes from steps to pairs and back is a product with a constant matrix of zeros and ones. Two sums over the
pairs give the derivatives of scale, shift, out and normalisation.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from paircredit.weights.pairs.problem import NORMALISER_EPSILON, PairParameters, pair_count, pair_mask

MOST_IN_ONE_SUM = 256
"""Pairs; the mean of more, summed in single precision, is mended by that of what it leaves over."""


@jax.custom_vjp
def whole_pair_logits(parameters: PairParameters, valid: Bool[Array, " T"]) -> Float[Array, "T T"]:
    """The logits z of all pairs, holding [T(T+1)/2, D] arrays."""
    return _forward(parameters, valid)[0]


class _Pairs(NamedTuple):
    """The P pairs t ≤ k of an episode: what each has of its row, its column and its lag, and whether it is valid."""

    rows: Float[Array, "P D"]
    columns: Float[Array, "P D"]
    lags: Float[Array, "P D"]
    valid: Bool[Array, " P"]


def _pairs(parameters: PairParameters, valid: Array) -> _Pairs:
    p, to_pairs = parameters, _matrices(valid.shape[0], parameters.rows.dtype)
    keep = valid[:, None]  # padding may hold anything
    return _Pairs(
        to_pairs.row @ jnp.where(keep, p.rows, 0.0),
        to_pairs.column @ jnp.where(keep, p.columns, 0.0),
        to_pairs.lag @ p.lags,
        to_pairs.place @ pair_mask(valid).reshape(-1).astype(p.rows.dtype) > 0,
    )


def _forward(parameters: PairParameters, valid: Array) -> tuple[Array, tuple]:
    p, pairs, steps = parameters, _pairs(parameters, valid), valid.shape[0]
    weight = pairs.valid.astype(p.rows.dtype) / pair_count(valid, p.rows.dtype)
    fused = pairs.rows * pairs.columns * pairs.lags
    centred = fused - weight @ fused
    if len(centred) > MOST_IN_ONE_SUM:
        centred -= weight @ centred
    deviation = jnp.sqrt(weight @ jnp.square(centred) + NORMALISER_EPSILON)
    x = jax.lax.optimization_barrier(centred / deviation)  # else it is computed again wherever it is used
    z = jnp.where(pairs.valid, jax.nn.relu(p.scale * x + p.shift) @ p.out, 0.0)
    return (z @ _matrices(steps, z.dtype).place).reshape(steps, steps), (parameters, valid, x, deviation)


def _backward(kept: tuple, cotangent: Float[Array, "T T"]) -> tuple[PairParameters, np.ndarray]:
    p, valid, x, deviation = kept
    pairs, to_pairs = _pairs(p, valid), _matrices(valid.shape[0], x.dtype)
    dz = jnp.where(pairs.valid, to_pairs.place @ cotangent.reshape(-1), 0.0)
    active = (p.scale * x + p.shift > 0).astype(x.dtype)
    plain, with_x = dz @ active, dz @ (active * x)
    count = pair_count(valid, x.dtype)
    through = (p.scale * p.out / deviation) * (dz[:, None] * active - plain / count - x * (with_x / count))
    d_fused = jax.lax.optimization_barrier(jnp.where(pairs.valid[:, None], through, 0.0))
    gradient = PairParameters(
        rows=to_pairs.row.T @ (d_fused * pairs.columns * pairs.lags),
        columns=to_pairs.column.T @ (d_fused * pairs.rows * pairs.lags),
        lags=to_pairs.lag.T @ (d_fused * pairs.rows * pairs.columns),
        scale=p.out * with_x,
        shift=p.out * plain,
        out=p.scale * with_x + p.shift * plain,
    )
    return gradient, np.zeros(valid.shape, dtype=jax.dtypes.float0)


whole_pair_logits.defvjp(_forward, _backward)


class _Matrices(NamedTuple):
    """From steps to pairs by row and by column, from lags to pairs [P, T]; from all places of z to pairs [P, T²]."""

    row: Array
    column: Array
    lag: Array
    place: Array


def _matrices(steps: int, dtype: jnp.dtype) -> _Matrices:
    row, column = np.triu_indices(steps)
    one_hot, places = np.eye(steps), np.eye(steps * steps)[row * steps + column]
    found = (one_hot[row], one_hot[column], one_hot[column - row], places)
    return _Matrices(*(jnp.asarray(matrix, dtype=dtype) for matrix in found))
