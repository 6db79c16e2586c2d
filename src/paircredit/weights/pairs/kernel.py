"""Three GPU kernels: statistics, logits, and one for the whole backward pass. No pair's vector ever leaves registers.

Pairs are walked in the coordinates (t, l = k − t): a block of lags stays in registers while the rows go by, and the
columns t + l are read as they are met. The program that owns a block of channels of an episode sees all pairs of the
episode, so that the sums of the normalisation and of its derivative need no second kernel. Only the derivative of the
columns lies across those coordinates; it is taken in a loop of its own over (k, l), which is cheaper than atomic
additions and gives the same bits every time.

Written in Pallas for its Triton back end; `interpret` runs the same kernels on a CPU, for the tests.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu
from jaxtyping import Array, Bool, Float

from paircredit.weights.pairs.problem import NORMALISER_EPSILON, PairParameters, pair_count, pair_mask

LAGS = 32
"""Lags per block."""
CHANNELS = 32
"""Channels per block."""
ROWS = 4
"""Rows per program of the logits kernel."""
WARPS = 2
"""Warps per program."""


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


class _Sizes:
    """How an episode is cut: steps T, blocks of lags, and room T + blocks·LAGS so that no read falls outside."""

    def __init__(self, steps: int, channels: int) -> None:
        self.steps, self.channels = steps, channels
        self.lags = min(LAGS, _power_of_two(steps))
        self.block = min(CHANNELS, _power_of_two(channels))
        self.lag_blocks = -(-steps // self.lags)
        self.room = self.lag_blocks * self.lags
        self.row_tiles = -(-steps // ROWS)

    def behind(self, x: Array) -> Array:
        """Zeros behind the last step."""
        return jnp.pad(x, ((0, self.room),) + ((0, 0),) * (x.ndim - 1))

    def before(self, x: Array) -> Array:
        """Zeros before the first step."""
        return jnp.pad(x, ((self.room, 0),) + ((0, 0),) * (x.ndim - 1))


def _power_of_two(n: int) -> int:
    return 1 << (n - 1).bit_length()


def _call(kernel: Any, grid: int, outputs: Any, interpret: bool, *inputs: Array) -> Any:
    """A kernel whose programs see all inputs and outputs whole."""

    def whole(x: Any) -> pl.BlockSpec:
        zeros = (0,) * len(x.shape)
        return pl.BlockSpec(x.shape, lambda _: zeros)

    with warnings.catch_warnings():  # JAX prefers its newer GPU back end; this one is what runs these loops well
        warnings.filterwarnings("ignore", message=".*Pallas Triton.*", category=DeprecationWarning)
        return pl.pallas_call(
            kernel,
            grid=(grid,),
            in_specs=[whole(x) for x in inputs],
            out_specs=jax.tree.map(whole, outputs),
            out_shape=outputs,
            interpret=interpret,
            compiler_params=plgpu.CompilerParams(num_warps=WARPS, num_stages=2),
        )(*inputs)


def _statistics_kernel(
    sizes: _Sizes, rows: Any, columns: Any, lags: Any, valid: Any, count: Any, mean: Any, deviation: Any
) -> None:
    own = pl.ds(pl.program_id(0) * sizes.block, sizes.block)
    zero = jnp.zeros((sizes.block,), dtype=jnp.float32)

    def over_pairs(term: Any) -> Array:
        total = zero
        for block in range(sizes.lag_blocks):
            lag = lags[pl.ds(block * sizes.lags, sizes.lags), own]

            def row(t: Array, accumulated: Array, block: int = block, lag: Array = lag) -> Array:
                later = pl.ds(t + block * sizes.lags, sizes.lags)
                there = (valid[t] * valid[later])[:, None]
                return accumulated + term(rows[t, own][None, :] * columns[later, own] * lag, there)

            start = jnp.zeros((sizes.lags, sizes.block), dtype=jnp.float32)
            total += jnp.sum(jax.lax.fori_loop(0, sizes.steps - block * sizes.lags, row, start), axis=0)
        return total

    centre = over_pairs(lambda fused, there: fused * there) / count[0]
    squares = over_pairs(lambda fused, there: (fused - centre[None, :]) * (fused - centre[None, :]) * there)
    mean[own] = centre
    deviation[own] = jnp.sqrt(squares / count[0] + NORMALISER_EPSILON)


def _logits_kernel(
    sizes: _Sizes, rows: Any, columns: Any, lags: Any, mean: Any, slope: Any, shift: Any, out: Any, z: Any
) -> None:
    tile, block = pl.program_id(0) // sizes.lag_blocks, pl.program_id(0) % sizes.lag_blocks

    def channels(c: Array, totals: tuple[Array, ...]) -> tuple[Array, ...]:
        own = pl.ds(c * sizes.block, sizes.block)
        lag = lags[pl.ds(block * sizes.lags, sizes.lags), own]
        centre, steep, shifted, weight = (x[own][None, :] for x in (mean, slope, shift, out))
        new = []
        for r, total in enumerate(totals):
            t = tile * ROWS + r
            fused = rows[t, own][None, :] * columns[pl.ds(t + block * sizes.lags, sizes.lags), own] * lag
            new.append(total + jnp.sum(jnp.maximum((fused - centre) * steep + shifted, 0.0) * weight, axis=1))
        return tuple(new)

    start = (jnp.zeros((sizes.lags,), dtype=jnp.float32),) * ROWS
    for r, total in enumerate(jax.lax.fori_loop(0, sizes.channels // sizes.block, channels, start)):
        t = tile * ROWS + r
        z[t, pl.ds(t + block * sizes.lags, sizes.lags)] = total


def _backward_kernel(
    sizes: _Sizes,
    rows: Any,
    rows_behind: Any,
    columns: Any,
    lags: Any,
    valid: Any,
    valid_before: Any,
    count: Any,
    mean: Any,
    deviation: Any,
    scale: Any,
    shift: Any,
    out: Any,
    dz: Any,
    dz_across: Any,
    d_rows: Any,
    d_columns: Any,
    d_lags: Any,
    d_scale: Any,
    d_shift: Any,
    d_out: Any,
) -> None:
    own = pl.ds(pl.program_id(0) * sizes.block, sizes.block)
    centre, inverse = mean[own][None, :], (1.0 / deviation[own])[None, :]
    steep, shifted, weight = scale[own][None, :], shift[own][None, :], out[own]
    zeros = jnp.zeros((sizes.lags, sizes.block), dtype=jnp.float32)
    nothing = jnp.zeros((sizes.block,), dtype=jnp.float32)

    # The sums that the derivative of the normalisation needs. Cotangents of what is no pair are 0 already.
    plain, with_x, through = nothing, nothing, nothing
    for block in range(sizes.lag_blocks):
        lag = lags[pl.ds(block * sizes.lags, sizes.lags), own]

        def sums(t: Array, totals: tuple, block: int = block, lag: Array = lag) -> tuple:
            later = pl.ds(t + block * sizes.lags, sizes.lags)
            x = (rows[t, own][None, :] * columns[later, own] * lag - centre) * inverse
            y = x * steep + shifted
            received = dz[t, later][:, None]
            opened = jnp.where(y > 0, received, 0.0)
            return totals[0] + opened, totals[1] + opened * x, totals[2] + opened * y

        found = jax.lax.fori_loop(0, sizes.steps - block * sizes.lags, sums, (zeros, zeros, zeros))
        plain, with_x, through = (
            total + jnp.sum(part, axis=0) for total, part in zip((plain, with_x, through), found, strict=True)
        )
    d_scale[own], d_shift[own], d_out[own] = weight * with_x, weight * plain, through
    factor = (scale[own] * weight / deviation[own])[None, :]
    mean_plain, mean_x = (plain / count[0])[None, :], (with_x / count[0])[None, :]

    def d_fused(fused: Array, received: Array, there: Array) -> Array:
        x = (fused - centre) * inverse
        opened = jnp.where(x * steep + shifted > 0, received, 0.0)
        return factor * there * (opened - mean_plain - x * mean_x)

    for block in range(sizes.lag_blocks):
        lag = lags[pl.ds(block * sizes.lags, sizes.lags), own]

        def by_rows(t: Array, total: Array, block: int = block, lag: Array = lag) -> Array:
            later = pl.ds(t + block * sizes.lags, sizes.lags)
            row, column = rows[t, own][None, :], columns[later, own]
            product = column * lag
            d = d_fused(row * product, dz[t, later][:, None], (valid[t] * valid[later])[:, None])
            earlier = d_rows[t, own] if block else 0.0
            d_rows[t, own] = earlier + jnp.sum(d * product, axis=0)
            return total + d * row * column

        found = jax.lax.fori_loop(0, sizes.steps - block * sizes.lags, by_rows, zeros)
        d_lags[pl.ds(block * sizes.lags, sizes.lags), own] = found

        # Lags in reverse: the rows k − l of a column k then lie in order.
        backwards = lags[pl.ds(sizes.room + (sizes.lag_blocks - 1 - block) * sizes.lags, sizes.lags), own]

        def by_columns(k: Array, _: Array, block: int = block, lag: Array = backwards) -> Array:
            first = k + sizes.room - block * sizes.lags - sizes.lags + 1
            before = pl.ds(first, sizes.lags)
            product = rows_behind[before, own] * lag
            received = dz_across[k, before][:, None]
            d = d_fused(product * columns[k, own][None, :], received, (valid[k] * valid_before[before])[:, None])
            earlier = d_columns[k, own] if block else 0.0
            d_columns[k, own] = earlier + jnp.sum(d * product, axis=0)
            return _

        jax.lax.fori_loop(block * sizes.lags, sizes.steps, by_columns, 0)


def _forward(interpret: bool, parameters: PairParameters, valid: Array) -> tuple[Array, tuple]:
    p = parameters
    sizes = _Sizes(*p.rows.shape)
    count = pair_count(valid, p.rows.dtype)[None]
    rows = jnp.pad(p.rows, ((0, sizes.row_tiles * ROWS - sizes.steps), (0, 0)))
    columns = jnp.pad(p.columns, ((0, sizes.room + ROWS), (0, 0)))
    lags = _lag_table(p.lags, sizes)
    there = sizes.behind(valid.astype(p.rows.dtype))
    channel = jax.ShapeDtypeStruct((sizes.channels,), p.rows.dtype)
    mean, deviation = _call(
        partial(_statistics_kernel, sizes),
        sizes.channels // sizes.block,
        (channel, channel),
        interpret,
        *(rows, columns, lags, there, count),
    )
    z = _call(
        partial(_logits_kernel, sizes),
        sizes.row_tiles * sizes.lag_blocks,
        jax.ShapeDtypeStruct((rows.shape[0], columns.shape[0]), p.rows.dtype),
        interpret,
        *(rows, columns, lags, mean, p.scale / deviation, p.shift, p.out),
    )
    z = jnp.where(pair_mask(valid), z[: sizes.steps, : sizes.steps], 0.0)
    return z, (parameters, valid, mean, deviation)


def _backward(interpret: bool, kept: tuple, cotangent: Float[Array, "T T"]) -> tuple[PairParameters, np.ndarray]:
    p, valid, mean, deviation = kept
    sizes = _Sizes(*p.rows.shape)
    masked = jnp.where(pair_mask(valid), cotangent, 0.0)
    there = valid.astype(p.rows.dtype)

    def like(*shape: int) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, p.rows.dtype)

    steps, channels = sizes.steps, sizes.channels
    d_rows, d_columns, d_lags, d_scale, d_shift, d_out = _call(
        partial(_backward_kernel, sizes),
        channels // sizes.block,
        (like(steps, channels), like(steps, channels), like(sizes.room, channels), *(like(channels),) * 3),
        interpret,
        p.rows,
        sizes.before(p.rows),
        sizes.behind(p.columns),
        _lag_table(p.lags, sizes),
        sizes.behind(there),
        sizes.before(there),
        pair_count(valid, p.rows.dtype)[None],
        mean,
        deviation,
        p.scale,
        p.shift,
        p.out,
        jnp.pad(masked, ((0, 0), (0, sizes.room))),
        jnp.pad(masked.T, ((0, 0), (sizes.room, 0))),
    )
    gradient = PairParameters(d_rows, d_columns, d_lags[:steps], d_scale, d_shift, d_out)
    return gradient, np.zeros(valid.shape, dtype=jax.dtypes.float0)


_logits.defvjp(_forward, _backward)


def _lag_table(lags: Array, sizes: _Sizes) -> Array:
    """Lags with zeros behind to fill the blocks, then the same in reverse."""
    filled = jnp.pad(lags, ((0, sizes.room - sizes.steps), (0, 0)))
    return jnp.concatenate([filled, filled[::-1]])
