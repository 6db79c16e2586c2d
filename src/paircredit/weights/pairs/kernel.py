"""Four GPU kernels: sums, logits, sums for the derivative, derivatives. No pair's vector ever leaves registers.

Pairs are walked in the coordinates (t, l = k − t): a block of lags stays in registers while the rows go by, and the
columns t + l are read as they are met. A program owns a block of channels and some blocks of lags: all of them in short
episodes, one part of them in long ones, so that there are programs enough; what the parts have summed is added up
behind the kernel. Only the derivative of the columns lies across those coordinates; it is taken in a loop of its own
over (k, l), which is cheaper than atomic additions and gives the same bits every time.

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
TURNS = 4
"""Blocks of lags that a program takes one after another; more of them are more programs."""


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
        blocks = -(-steps // self.lags)
        self.parts = -(-blocks // TURNS)
        self.turns = -(-blocks // self.parts)
        self.lag_blocks = self.parts * self.turns
        self.room = self.lag_blocks * self.lags
        self.row_tiles = -(-steps // ROWS)
        self.programs = self.parts * (channels // self.block)

    def place(self) -> tuple[Any, Any, list[Any]]:
        """What a program of all but the logits owns: its part, its channels, and its blocks of lags.

        Blocks of long lags hold fewer pairs: every part has some of each kind.
        """
        part: Any = pl.program_id(0) % self.parts if self.parts > 1 else 0
        own = pl.ds(pl.program_id(0) // self.parts * self.block, self.block)
        return part, own, [part + self.parts * turn for turn in range(self.turns)]

    def behind(self, x: Array) -> Array:
        """Zeros behind the last step."""
        return jnp.pad(x, ((0, self.room),) + ((0, 0),) * (x.ndim - 1))

    def before(self, x: Array) -> Array:
        """Zeros before the first step."""
        return jnp.pad(x, ((self.room, 0),) + ((0, 0),) * (x.ndim - 1))

    def joined(self, x: Float[Array, "parts T D"], reverse: bool = False) -> Float[Array, "T D"]:
        """The sum over parts. Part p has written nothing for its last p·LAGS steps (first ones, in reverse)."""
        if self.parts == 1:
            return x[0]
        steps = jnp.arange(self.steps)[::-1] if reverse else jnp.arange(self.steps)
        written = steps[None, :] < self.steps - self.lags * jnp.arange(self.parts)[:, None]
        return jnp.sum(jnp.where(written[..., None], x, 0.0), axis=0)


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


def _moment_kernel(
    sizes: _Sizes, power: int, rows: Any, columns: Any, lags: Any, valid: Any, centre: Any, totals: Any
) -> None:
    part, own, blocks = sizes.place()
    middle, total = centre[own][None, :], jnp.zeros((sizes.block,), dtype=jnp.float32)
    for block in blocks:
        lag = lags[pl.ds(block * sizes.lags, sizes.lags), own]

        def row(t: Array, accumulated: Array, block: Any = block, lag: Array = lag) -> Array:
            later = pl.ds(t + block * sizes.lags, sizes.lags)
            there = (valid[t] * valid[later])[:, None]
            away = rows[t, own][None, :] * columns[later, own] * lag - middle
            return accumulated + (away if power == 1 else away * away) * there

        start = jnp.zeros((sizes.lags, sizes.block), dtype=jnp.float32)
        total += jnp.sum(jax.lax.fori_loop(0, sizes.steps - block * sizes.lags, row, start), axis=0)
    totals[part, own] = total


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
    inside = (tile * ROWS + block * sizes.lags < sizes.steps).astype(jnp.int32)
    for r, total in enumerate(jax.lax.fori_loop(0, inside * (sizes.channels // sizes.block), channels, start)):
        t = tile * ROWS + r
        z[t, pl.ds(t + block * sizes.lags, sizes.lags)] = total


def _sums_kernel(
    sizes: _Sizes,
    rows: Any,
    columns: Any,
    lags: Any,
    mean: Any,
    inverse: Any,
    scale: Any,
    shift: Any,
    dz: Any,
    plain: Any,
    with_x: Any,
    through: Any,
) -> None:
    """The sums that the derivative of the normalisation needs. Cotangents of what is no pair are 0 already."""
    part, own, blocks = sizes.place()
    centre, narrow, steep, shifted = (x[own][None, :] for x in (mean, inverse, scale, shift))
    zeros = jnp.zeros((sizes.lags, sizes.block), dtype=jnp.float32)
    totals = [jnp.zeros((sizes.block,), dtype=jnp.float32)] * 3
    for block in blocks:
        lag = lags[pl.ds(block * sizes.lags, sizes.lags), own]

        def sums(t: Array, totals: tuple, block: Any = block, lag: Array = lag) -> tuple:
            later = pl.ds(t + block * sizes.lags, sizes.lags)
            x = (rows[t, own][None, :] * columns[later, own] * lag - centre) * narrow
            y = x * steep + shifted
            opened = jnp.where(y > 0, dz[t, later][:, None], 0.0)
            return totals[0] + opened, totals[1] + opened * x, totals[2] + opened * y

        found = jax.lax.fori_loop(0, sizes.steps - block * sizes.lags, sums, (zeros, zeros, zeros))
        totals = [total + jnp.sum(new, axis=0) for total, new in zip(totals, found, strict=True)]
    plain[part, own], with_x[part, own], through[part, own] = totals


def _derivative_kernel(
    sizes: _Sizes,
    rows: Any,
    rows_behind: Any,
    columns: Any,
    lags: Any,
    valid: Any,
    valid_before: Any,
    mean: Any,
    inverse: Any,
    scale: Any,
    shift: Any,
    factor: Any,
    mean_plain: Any,
    mean_x: Any,
    dz: Any,
    dz_across: Any,
    d_rows: Any,
    d_columns: Any,
    d_lags: Any,
) -> None:
    part, own, blocks = sizes.place()
    centre, narrow, steep, shifted, outer, level, slope = (
        x[own][None, :] for x in (mean, inverse, scale, shift, factor, mean_plain, mean_x)
    )
    zeros = jnp.zeros((sizes.lags, sizes.block), dtype=jnp.float32)

    def d_fused(fused: Array, received: Array, there: Array) -> Array:
        x = (fused - centre) * narrow
        opened = jnp.where(x * steep + shifted > 0, received, 0.0)
        return outer * there * (opened - level - x * slope)

    for turn, block in enumerate(blocks):
        lag = lags[pl.ds(block * sizes.lags, sizes.lags), own]

        def by_rows(t: Array, total: Array, turn: int = turn, block: Any = block, lag: Array = lag) -> Array:
            later = pl.ds(t + block * sizes.lags, sizes.lags)
            row, column = rows[t, own][None, :], columns[later, own]
            product = column * lag
            d = d_fused(row * product, dz[t, later][:, None], (valid[t] * valid[later])[:, None])
            earlier = d_rows[part, t, own] if turn else 0.0
            d_rows[part, t, own] = earlier + jnp.sum(d * product, axis=0)
            return total + d * row * column

        found = jax.lax.fori_loop(0, sizes.steps - block * sizes.lags, by_rows, zeros)
        d_lags[pl.ds(block * sizes.lags, sizes.lags), own] = found

        # Lags in reverse: the rows k − l of a column k then lie in order.
        backwards = lags[pl.ds(sizes.room + (sizes.lag_blocks - 1 - block) * sizes.lags, sizes.lags), own]

        def by_columns(k: Array, _: Array, turn: int = turn, block: Any = block, lag: Array = backwards) -> Array:
            first = k + sizes.room - block * sizes.lags - sizes.lags + 1
            before = pl.ds(first, sizes.lags)
            product = rows_behind[before, own] * lag
            received = dz_across[k, before][:, None]
            d = d_fused(product * columns[k, own][None, :], received, (valid[k] * valid_before[before])[:, None])
            earlier = d_columns[part, k, own] if turn else 0.0
            d_columns[part, k, own] = earlier + jnp.sum(d * product, axis=0)
            return _

        jax.lax.fori_loop(block * sizes.lags, sizes.steps, by_columns, 0)


def _forward(interpret: bool, parameters: PairParameters, valid: Array) -> tuple[Array, tuple]:
    p = parameters
    sizes = _Sizes(*p.rows.shape)
    count = pair_count(valid, p.rows.dtype)
    rows = jnp.pad(p.rows, ((0, sizes.row_tiles * ROWS - sizes.steps), (0, 0)))
    columns = jnp.pad(p.columns, ((0, sizes.room + ROWS), (0, 0)))
    lags = _lag_table(p.lags, sizes)
    there = sizes.behind(valid.astype(p.rows.dtype))

    def moment(power: int, centre: Array) -> Array:
        totals = jax.ShapeDtypeStruct((sizes.parts, sizes.channels), p.rows.dtype)
        kernel = partial(_moment_kernel, sizes, power)
        found = _call(kernel, sizes.programs, totals, interpret, rows, columns, lags, there, centre)
        return jnp.sum(found, axis=0) / count

    mean = moment(1, jnp.zeros_like(p.scale))
    deviation = jnp.sqrt(moment(2, mean) + NORMALISER_EPSILON)
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
    count = pair_count(valid, p.rows.dtype)
    masked = jnp.where(pair_mask(valid), cotangent, 0.0)
    dz = jnp.pad(masked, ((0, 0), (0, sizes.room)))
    there = valid.astype(p.rows.dtype)
    columns, lags = sizes.behind(p.columns), _lag_table(p.lags, sizes)

    def like(*shape: int) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct((*shape, sizes.channels), p.rows.dtype)

    found = _call(
        partial(_sums_kernel, sizes),
        sizes.programs,
        (like(sizes.parts),) * 3,
        interpret,
        *(p.rows, columns, lags, mean, 1.0 / deviation, p.scale, p.shift, dz),
    )
    plain, with_x, through = (jnp.sum(x, axis=0) for x in found)
    d_rows, d_columns, d_lags = _call(
        partial(_derivative_kernel, sizes),
        sizes.programs,
        (like(sizes.parts, sizes.steps), like(sizes.parts, sizes.steps), like(sizes.room)),
        interpret,
        p.rows,
        sizes.before(p.rows),
        columns,
        lags,
        sizes.behind(there),
        sizes.before(there),
        mean,
        1.0 / deviation,
        p.scale,
        p.shift,
        p.scale * p.out / deviation,
        plain / count,
        with_x / count,
        dz,
        jnp.pad(masked.T, ((0, 0), (sizes.room, 0))),
    )
    gradient = PairParameters(
        rows=sizes.joined(d_rows),
        columns=sizes.joined(d_columns, reverse=True),
        lags=d_lags[: sizes.steps],
        scale=p.out * with_x,
        shift=p.out * plain,
        out=through,
    )
    return gradient, np.zeros(valid.shape, dtype=jax.dtypes.float0)


_logits.defvjp(_forward, _backward)


def _lag_table(lags: Array, sizes: _Sizes) -> Array:
    """Lags with zeros behind to fill the blocks, then the same in reverse."""
    filled = jnp.pad(lags, ((0, sizes.room - sizes.steps), (0, 0)))
    return jnp.concatenate([filled, filled[::-1]])
