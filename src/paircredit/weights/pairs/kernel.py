"""Four GPU kernels: sums, logits, sums for the derivative, derivatives. No pair's vector ever leaves registers.

Pairs are walked in the coordinates (t, l = k − t): a program holds a block of lags and a block of channels in registers
while the rows t go by, and reads the columns t + l as it meets them. The sums of all programs are added up afterwards.

Derivatives are three such walks of one kernel, each for one factor of the products: a program holds a block of lags
while the rows go by, of rows while the lags go by, or, with time reversed, of columns while the lags go by, and the
derivative of that block. No step sums across threads or adds to memory, and the bits are the same every time.

Written in Pallas for its Triton back end; `interpret` runs the same kernels on a CPU, for the tests.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jaxtyping import Array, Bool, Float

from paircredit.networks.additive_cell import triton_call
from paircredit.weights.pairs import NORMALISER_EPSILON, PairParameters, pair_count, pair_mask

BLOCK = 32
"""Lags, rows or columns that a program holds. This and all sizes below must be powers of two."""
CHANNELS = 32
"""Channels in which it holds them."""
WARPS, STAGES = 2, 2
"""Of a program: its warps, and the stages of its software pipeline."""
ROWS = 4
"""Rows per program of the logits kernel."""
STRIDE = 2
"""Steps of a walk per turn of its loop."""


def kernel_pair_logits(
    parameters: PairParameters, valid: Bool[Array, " T"], interpret: bool = False
) -> Float[Array, "T T"]:
    """The logits z of all pairs, in float32, with the kernels.

    Channels are filled up with zeros to whole blocks: they add nothing to any logit.
    """
    width = parameters.out.shape[0]
    missing = -width % min(CHANNELS, _power_of_two(width))
    padded = jax.tree.map(lambda x: jnp.pad(x, ((0, 0),) * (x.ndim - 1) + ((0, missing),)), parameters)
    return _logits(interpret, padded, valid)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _logits(interpret: bool, parameters: PairParameters, valid: Bool[Array, " T"]) -> Float[Array, "T T"]:
    return _forward(interpret, parameters, valid)[0]


class _Cut:
    """How an episode is cut into blocks of `size` steps (or lags) and `width` channels.

    Blocks fill `whole` steps; there is `room` for one block more, so that a block read from any step lies inside.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        steps, channels = self.steps, self.channels = shape
        self.size, self.width = min(BLOCK, _power_of_two(steps)), min(CHANNELS, _power_of_two(channels))
        self.blocks = -(-steps // self.size)
        self.whole = self.blocks * self.size
        self.room = self.whole + self.size
        self.programs = self.blocks * (channels // self.width)

    def place(self) -> tuple[Any, Any]:
        """The block of steps (or lags) and the channels of this program, in all kernels but that of the logits."""
        block, channels = pl.program_id(0) % self.blocks, pl.program_id(0) // self.blocks
        return block, pl.ds(channels * self.width, self.width)

    def filled(self, x: Array) -> Array:
        """The array with zeros after the last step, up to `room`."""
        return jnp.pad(x, ((0, self.room - self.steps),) + ((0, 0),) * (x.ndim - 1))

    def filled_pairs(self, x: Float[Array, "T T"]) -> Float[Array, "whole whole"]:
        """The array with zeros after both axes, up to `whole`."""
        return jnp.pad(x, ((0, self.whole - self.steps),) * 2)


def _power_of_two(n: int) -> int:
    return 1 << (n - 1).bit_length()


def _call(kernel: Any, grid: int, outputs: Any, interpret: bool, *inputs: Array) -> Any:
    return triton_call(kernel, outputs, interpret, WARPS, STAGES, *inputs, grid=grid)


def _moment_kernel(
    cut: _Cut, power: int, rows: Any, columns: Any, lags: Any, valid: Any, centre: Any, totals: Any
) -> None:
    block, own = cut.place()
    first = block * cut.size
    middle, lag = centre[own][None, :], lags[pl.ds(first, cut.size), own]

    def row(t: Array, total: Array) -> Array:
        later = pl.ds(t + first, cut.size)
        there = (valid[t] * valid[later])[:, None]
        away = rows[t, own][None, :] * columns[later, own] * lag - middle
        return total + (away if power == 1 else away * away) * there

    start = jnp.zeros((cut.size, cut.width), dtype=jnp.float32)
    totals[block, own] = jnp.sum(jax.lax.fori_loop(0, cut.steps - first, row, start), axis=0)


def _logits_kernel(
    cut: _Cut, rows: Any, columns: Any, lags: Any, mean: Any, slope: Any, shift: Any, out: Any, z: Any
) -> None:
    tile, block = pl.program_id(0) // cut.blocks, pl.program_id(0) % cut.blocks

    def channels(c: Array, totals: tuple[Array, ...]) -> tuple[Array, ...]:
        own = pl.ds(c * cut.width, cut.width)
        lag = lags[pl.ds(block * cut.size, cut.size), own]
        centre, steep, shifted, weight = (x[own][None, :] for x in (mean, slope, shift, out))
        new = []
        for r, total in enumerate(totals):
            t = tile * ROWS + r
            fused = rows[t, own][None, :] * columns[pl.ds(t + block * cut.size, cut.size), own] * lag
            new.append(total + jnp.sum(jnp.maximum((fused - centre) * steep + shifted, 0.0) * weight, axis=1))
        return tuple(new)

    start = (jnp.zeros((cut.size,), dtype=jnp.float32),) * ROWS
    inside = (tile * ROWS + block * cut.size < cut.steps).astype(jnp.int32)
    for r, total in enumerate(jax.lax.fori_loop(0, inside * (cut.channels // cut.width), channels, start)):
        t = tile * ROWS + r
        z[t, pl.ds(t + block * cut.size, cut.size)] = total


def _sums_kernel(
    cut: _Cut,
    rows: Any,
    columns: Any,
    lags: Any,
    dz: Any,
    mean: Any,
    slope: Any,
    shift: Any,
    plain: Any,
    with_away: Any,
    through: Any,
) -> None:
    """The sums that the derivative of the normalisation needs. Cotangents of entries that are no pair are 0 already."""
    block, own = cut.place()
    first = block * cut.size
    held, lag = pl.ds(first, cut.size), lags[pl.ds(first, cut.size), own]
    centre, steep, shifted = (x[own][None, :] for x in (mean, slope, shift))

    def sums(t: Array, totals: tuple[Array, ...]) -> tuple[Array, ...]:
        away = rows[t, own][None, :] * columns[pl.ds(t + first, cut.size), own] * lag - centre
        y = away * steep + shifted
        opened = jnp.where(y > 0, dz[t, held][:, None], 0.0)
        return totals[0] + opened, totals[1] + opened * away, totals[2] + opened * y

    start = (jnp.zeros((cut.size, cut.width), dtype=jnp.float32),) * 3
    found = jax.lax.fori_loop(0, cut.steps - first, sums, start)
    plain[block, own], with_away[block, own], through[block, own] = (jnp.sum(x, axis=0) for x in found)


def _walk_kernel(
    cut: _Cut,
    held: Any,
    passing: Any,
    shared: Any,
    dz: Any,
    mean: Any,
    slope: Any,
    shift: Any,
    level: Any,
    tilt: Any,
    factor: Any,
    d_held: Any,
) -> None:
    """The derivative of one factor of the products, of which each program holds a block.

    At step s, entry i meets the other two factors, `passing[i + s]` and `shared[s]`; the cotangent is `dz[s, i]`.
    Where they make no pair (with a valid i), one of them is 0 already, and so is what they add.
    """
    block, own = cut.place()
    first, stride = block * cut.size, min(STRIDE, cut.size)
    mine = pl.ds(first, cut.size)
    here = held[mine, own]
    centre, steep, shifted, lowered, tilted = (x[own][None, :] for x in (mean, slope, shift, level, tilt))

    def advance(turn: Array, total: Array) -> Array:
        for s in [turn * stride + n for n in range(stride)]:
            others = passing[pl.ds(first + s, cut.size), own] * shared[s, own][None, :]
            away = here * others - centre
            opened = jnp.where(away * steep + shifted > 0, dz[s, mine][:, None], 0.0)
            total += (opened - lowered - away * tilted) * others
        return total

    start = jnp.zeros((cut.size, cut.width), dtype=jnp.float32)
    total = jax.lax.fori_loop(0, pl.cdiv(cut.steps - first, stride), advance, start)
    d_held[mine, own] = total * factor[own][None, :]


def _forward(interpret: bool, parameters: PairParameters, valid: Array) -> tuple[Array, tuple]:
    p = parameters
    cut = _Cut(p.rows.shape)
    count = pair_count(valid, p.rows.dtype)
    row_tiles = -(-cut.steps // ROWS)
    rows = jnp.pad(p.rows, ((0, row_tiles * ROWS - cut.steps), (0, 0)))
    columns = jnp.pad(p.columns, ((0, cut.whole + ROWS), (0, 0)))
    lags, there = cut.filled(p.lags), cut.filled(valid.astype(p.rows.dtype))

    def moment(power: int, centre: Array) -> Array:
        totals = jax.ShapeDtypeStruct((cut.blocks, cut.channels), p.rows.dtype)
        kernel = partial(_moment_kernel, cut, power)
        found = _call(kernel, cut.programs, totals, interpret, rows, columns, lags, there, centre)
        return jnp.sum(found, axis=0) / count

    mean = moment(1, jnp.zeros_like(p.scale))
    deviation = jnp.sqrt(moment(2, mean) + NORMALISER_EPSILON)
    z = _call(
        partial(_logits_kernel, cut),
        row_tiles * cut.blocks,
        jax.ShapeDtypeStruct((rows.shape[0], columns.shape[0]), p.rows.dtype),
        interpret,
        *(rows, columns, lags, mean, p.scale / deviation, p.shift, p.out),
    )
    z = jnp.where(pair_mask(valid), z[: cut.steps, : cut.steps], 0.0)
    return z, (parameters, valid, mean, deviation)


def _backward(interpret: bool, kept: tuple, cotangent: Float[Array, "T T"]) -> tuple[PairParameters, np.ndarray]:
    p, valid, mean, deviation = kept
    count = pair_count(valid, p.rows.dtype)
    rows, columns = (jnp.where(valid[:, None], x, 0.0) for x in (p.rows, p.columns))  # padding adds nothing
    masked = jnp.where(pair_mask(valid), cotangent, 0.0)
    by_row, by_column = _by_lag(masked), _by_lag(masked.T[::-1, ::-1])
    normal = (mean, p.scale / deviation, p.shift)

    cut = _Cut(p.rows.shape)
    totals = jax.ShapeDtypeStruct((cut.blocks, cut.channels), p.rows.dtype)
    given = (rows, cut.filled(columns), cut.filled(p.lags), cut.filled_pairs(by_row), *normal)
    found = _call(partial(_sums_kernel, cut), cut.programs, (totals,) * 3, interpret, *given)
    plain, with_away, through = (jnp.sum(x, axis=0) for x in found)
    with_x = with_away / deviation

    per_channel = (*normal, plain / count, with_x / (count * deviation), p.scale * p.out / deviation)

    def derivative(held: Array, passing: Array, shared: Array, dz: Array) -> Array:
        d_held = jax.ShapeDtypeStruct((cut.whole, cut.channels), p.rows.dtype)
        given = (*(cut.filled(x) for x in (held, passing, shared)), cut.filled_pairs(dz), *per_channel)
        return _call(partial(_walk_kernel, cut), cut.programs, d_held, interpret, *given)[: cut.steps]

    d_rows = derivative(rows, columns, p.lags, by_row.T)
    # With time reversed, the rows k − l of a column k lie ahead of it, as the columns t + l of a row t do.
    d_columns = derivative(columns[::-1], rows[::-1], p.lags, by_column.T)[::-1]
    gradient = PairParameters(
        rows=jnp.where(valid[:, None], d_rows, 0.0),
        columns=jnp.where(valid[:, None], d_columns, 0.0),
        lags=derivative(p.lags, columns, rows, by_row),
        scale=p.out * with_x,
        shift=p.out * plain,
        out=through,
    )
    return gradient, np.zeros(valid.shape, dtype=jax.dtypes.float0)


_logits.defvjp(_forward, _backward)


def _by_lag(pairs: Float[Array, "T T"]) -> Float[Array, "T T"]:
    """Entry (t, l) of the result is entry (t, t + l) of `pairs`, which must be 0 below the diagonal.

    Read again in rows one entry longer, every row begins at the diagonal and ends with zeros of the next row.
    """
    steps = pairs.shape[0]
    return jnp.pad(pairs.reshape(-1), (0, steps)).reshape(steps, steps + 1)[:, :steps]
