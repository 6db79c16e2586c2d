"""Never more than a few rows of pairs at a time, in either direction; written for any device.

The forward pass keeps two numbers per channel. The backward pass computes the pairs again, twice: once for the sums
that the normalisation's derivative needs, once for the derivatives of rows, columns and lags. The variance takes a pass
of its own after the mean: in one pass float32 would lose three digits of the gradient. On a CPU the sums of the
backward pass are products of matrices, which is several times as fast there.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from paircredit.weights.pairs import NORMALISER_EPSILON, PairParameters, pair_count

TILE = 8


def tiled_pair_logits(parameters: PairParameters, valid: Bool[Array, " T"], tile: int = TILE) -> Float[Array, "T T"]:
    """The logits z of all pairs, `tile` rows at a time."""
    return _logits(tile, parameters, valid)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _logits(tile: int, parameters: PairParameters, valid: Bool[Array, " T"]) -> Float[Array, "T T"]:
    return _forward(tile, parameters, valid)[0]


class _Tile(NamedTuple):
    """A few rows: number of the first, embeddings, which of them are valid, and the cotangents of their logits."""

    first: Int[Array, ""]
    rows: Float[Array, "R D"]
    valid: Bool[Array, " R"]
    cotangent: Float[Array, "R any"]


class _Pairs:
    """The pairs of an episode, a tile at a time."""

    def __init__(self, tile: int, parameters: PairParameters, valid: Array) -> None:
        self.tile, self.steps = tile, valid.shape[0]
        self.parameters, self.valid = parameters, valid
        # Lag l lies at l + zero_lag; what lies in front is 0 and is met below the diagonal only.
        self.zero_lag = self.steps + tile - 1
        self.lags = jnp.pad(parameters.lags, ((self.zero_lag, 0), (0, 0)))

    def tiles(self, cotangent: Float[Array, "T any"]) -> _Tile:
        """All tiles, stacked; the last one is padded with rows that are not valid. Cotangents may have no columns."""

        def cut(x: Array) -> Array:
            padded = jnp.pad(x, ((0, -x.shape[0] % self.tile),) + ((0, 0),) * (x.ndim - 1))
            return padded.reshape(number, self.tile, *x.shape[1:])

        number = -(-self.steps // self.tile)
        return _Tile(self.tile * jnp.arange(number), cut(self.parameters.rows), cut(self.valid), cut(cotangent))

    def lag(self, own: _Tile) -> Int[Array, "R T"]:
        """The lag k − t of every entry."""
        return jnp.arange(self.steps)[None, :] - (own.first + jnp.arange(self.tile))[:, None]

    def lags_of(self, own: _Tile) -> Float[Array, "R T D"]:
        return self.lags[self.lag(own) + self.zero_lag]

    def fused(self, own: _Tile) -> Float[Array, "R T D"]:
        return own.rows[:, None] * self.parameters.columns[None, :] * self.lags_of(own)

    def mask(self, own: _Tile) -> Bool[Array, "R T 1"]:
        return ((self.lag(own) >= 0) & own.valid[:, None] & self.valid[None, :])[..., None]


def _forward(tile: int, parameters: PairParameters, valid: Array) -> tuple[Array, tuple]:
    p, pairs = parameters, _Pairs(tile, parameters, valid)
    tiles = pairs.tiles(jnp.zeros((pairs.steps, 0), dtype=p.rows.dtype))
    count, zero = pair_count(valid, p.rows.dtype), jnp.zeros_like(p.scale)

    def add_up(total: Array, own: _Tile) -> tuple[Array, None]:
        return total + jnp.sum(jnp.where(pairs.mask(own), pairs.fused(own), 0.0), axis=(0, 1)), None

    mean = jax.lax.scan(add_up, zero, tiles)[0] / count

    def add_squares(total: Array, own: _Tile) -> tuple[Array, None]:
        centred = jnp.where(pairs.mask(own), pairs.fused(own) - mean, 0.0)
        return total + jnp.sum(jnp.square(centred), axis=(0, 1)), None

    deviation = jnp.sqrt(jax.lax.scan(add_squares, zero, tiles)[0] / count + NORMALISER_EPSILON)

    def logits(_: None, own: _Tile) -> tuple[None, Array]:
        hidden = jax.nn.relu(p.scale * ((pairs.fused(own) - mean) / deviation) + p.shift)
        return None, jnp.where(pairs.mask(own)[..., 0], jnp.sum(hidden * p.out, axis=-1), 0.0)

    _, z = jax.lax.scan(logits, None, tiles)
    return z.reshape(-1, pairs.steps)[: pairs.steps], (parameters, valid, mean, deviation)


def _backward(tile: int, kept: tuple, cotangent: Float[Array, "T T"]) -> tuple[PairParameters, np.ndarray]:
    p, valid, mean, deviation = kept
    pairs = _Pairs(tile, p, valid)
    tiles, count, zero = pairs.tiles(cotangent), pair_count(valid, p.rows.dtype), jnp.zeros_like(p.scale)

    def channel_sums(total: list[Array], own: _Tile) -> tuple[list[Array], None]:
        x = (pairs.fused(own) - mean) / deviation
        dz = jnp.where(pairs.mask(own)[..., 0], own.cotangent, 0.0)
        active = (p.scale * x + p.shift > 0).astype(x.dtype)
        return [t + _summed(part, "rt", dz, "d") for t, part in zip(total, (active, active * x), strict=True)], None

    (plain, with_x), _ = jax.lax.scan(channel_sums, [zero, zero], tiles)
    factor = p.scale * p.out / deviation

    def embeddings(total: tuple[Array, Array], own: _Tile) -> tuple[tuple[Array, Array], Array]:
        d_columns, d_lags = total
        lags, met = pairs.lags_of(own), own.rows[:, None] * p.columns[None, :]
        x = (met * lags - mean) / deviation
        dz = jnp.where(p.scale * x + p.shift > 0, own.cotangent[..., None], 0.0)
        d_fused = jnp.where(pairs.mask(own), factor * (dz - plain / count - x * (with_x / count)), 0.0)
        diagonals = _sum_along_diagonals(d_fused * met)
        place = pairs.steps - own.first
        d_lags = jax.lax.dynamic_update_slice_in_dim(
            d_lags, jax.lax.dynamic_slice_in_dim(d_lags, place, diagonals.shape[0]) + diagonals, place, 0
        )
        d_product = d_fused * lags
        d_columns = d_columns + _summed(d_product, "rd", own.rows, "td")
        return (d_columns, d_lags), _summed(d_product, "td", p.columns, "rd")

    lag_sums = jnp.zeros((pairs.zero_lag + pairs.steps + 1, p.lags.shape[1]), dtype=p.lags.dtype)
    (d_columns, d_lags), d_rows = jax.lax.scan(embeddings, (jnp.zeros_like(p.columns), lag_sums), tiles)
    gradient = PairParameters(
        rows=d_rows.reshape(-1, d_rows.shape[-1])[: pairs.steps],
        columns=d_columns,
        lags=d_lags[pairs.zero_lag : pairs.zero_lag + pairs.steps],
        scale=p.out * with_x,
        shift=p.out * plain,
        out=p.scale * with_x + p.shift * plain,
    )
    return gradient, np.zeros(valid.shape, dtype=jax.dtypes.float0)


_logits.defvjp(_forward, _backward)


def _sum_along_diagonals(x: Float[Array, "R T D"]) -> Float[Array, "lags D"]:
    """Entry n of the sums collects x[r, k] with k − r = n − (R − 1).

    With its rows in reverse order and R zeros after each, the block is read again in rows one entry shorter: that
    shears it, and diagonals become columns.
    """
    tile, steps, channels = x.shape
    wide = jnp.pad(x[::-1], ((0, 0), (0, tile), (0, 0)))
    flat = wide.reshape(tile * (steps + tile), channels)[: tile * (steps + tile - 1)]
    return jnp.sum(flat.reshape(tile, steps + tile - 1, channels), axis=0)


def _summed(x: Float[Array, "R T D"], axes: str, factors: Float[Array, "..."], kept: str) -> Float[Array, "..."]:
    """The sum of x times factors, whose axes are named, over those of its own axes r, t and d that are not kept."""

    def as_sum(x: Array, factors: Array) -> Array:
        spread = factors[tuple(slice(None) if name in axes else None for name in "rtd")]
        return jnp.sum(x * spread, axis=tuple(place for place, name in enumerate("rtd") if name not in kept))

    as_product = partial(jnp.einsum, f"rtd,{axes}->{kept}", precision=jax.lax.Precision.HIGHEST)
    return jax.lax.platform_dependent(x, factors, cpu=as_product, default=as_sum)
