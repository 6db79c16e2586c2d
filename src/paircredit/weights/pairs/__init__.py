"""All pairs of an episode at once: what every back end computes, the plain version, and one for a CPU.

Per episode, for all pairs t ≤ k of valid steps, with rows, columns and lags already shifted by 1:

    h_tkd = row_td · column_kd · lag_(k−t)d              fuse
    x_tkd = (h_tkd − mean_d) / deviation_d               over the pairs of the episode
    z_tk  = Σ_d out_d · relu(scale_d · x_tkd + shift_d)  one number per pair

`lags[l]` belongs to the pair (t, k = t + l), whose time difference is l + 1. Entries of z that are no valid pair are 0.

`dense_pair_logits` leaves the derivative to JAX, which on a CPU takes ten times as long as the logits: sums over pairs
are computed one channel at a time, their terms again for each. `whole_pair_logits`, for short episodes, has it written
by hand: pairs lie in one row, t ≤ k only, and all that goes from steps to pairs and back is a product with a constant
matrix of zeros and ones.
"""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

NORMALISER_EPSILON = 1e-5
"""Added to the variance (the paper gives none)."""
MOST_IN_ONE_SUM = 256
"""Pairs in a sum in single precision; the mean of more pairs is corrected by the mean of what it leaves over."""


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
    """The number of pairs, at least 1."""
    steps = jnp.sum(valid).astype(dtype)
    return jnp.maximum(0.5 * steps * (steps + 1.0), 1.0)


def dense_pair_logits(
    parameters: PairParameters, valid: Bool[Array, " T"], episode: Int[Array, " T"] | None = None
) -> Float[Array, "T T"]:
    """The logits z of all pairs, holding [T, T, D] arrays, with derivatives by JAX.

    A segment may hold several episodes: with a number per step in `episode`, pairs, and their normalisation, stay
    within an episode, as if each had been given by itself. Segments are short, so that every pair's vector fits into
    memory.
    """
    p = parameters
    steps = jnp.arange(valid.shape[0])
    lag = jnp.maximum(steps[None, :] - steps[:, None], 0)
    together = valid[:, None] & valid[None, :]
    if episode is not None:
        together &= episode[:, None] == episode[None, :]
    mask = pair_mask(valid) & together
    fused = p.rows[:, None] * p.columns[None, :] * p.lags[lag]
    same = together.astype(fused.dtype)
    counts = jnp.maximum(same @ jnp.sum(mask, axis=1).astype(fused.dtype), 1.0)[:, None]

    def mean_of_episode(x: Float[Array, "T T D"]) -> Float[Array, "T D"]:
        of_rows = jnp.sum(jnp.where(mask[..., None], x, 0.0), axis=1)
        return jnp.matmul(same, of_rows, precision=jax.lax.Precision.HIGHEST) / counts

    centred = jnp.where(mask[..., None], fused - mean_of_episode(fused)[:, None], 0.0)
    deviation = jnp.sqrt(mean_of_episode(jnp.square(centred)) + NORMALISER_EPSILON)[:, None]
    hidden = jax.nn.relu(p.scale * centred / deviation + p.shift)
    return jnp.where(mask, hidden @ p.out, 0.0)


@jax.custom_vjp
def whole_pair_logits(parameters: PairParameters, valid: Bool[Array, " T"]) -> Float[Array, "T T"]:
    """The logits z of all pairs, holding [T(T+1)/2, D] arrays."""
    return _forward(parameters, valid)[0]


class _Pairs(NamedTuple):
    """The P pairs t ≤ k of an episode: the embeddings of their rows, columns and lags, and which of them are valid."""

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
    """Matrices from steps to pairs by row and by column, from lags to pairs [P, T], and from entries of z [P, T²]."""

    row: Array
    column: Array
    lag: Array
    place: Array


def _matrices(steps: int, dtype: jnp.dtype) -> _Matrices:
    row, column = np.triu_indices(steps)
    one_hot, places = np.eye(steps), np.eye(steps * steps)[row * steps + column]
    found = (one_hot[row], one_hot[column], one_hot[column - row], places)
    return _Matrices(*(jnp.asarray(matrix, dtype=dtype) for matrix in found))
