"""The additive cell: an LSTM that never forgets, and the recurrence in it that must go step by step.

`additive_scan` is that recurrence with a derivative by hand and nothing else in the loop. On a GPU one kernel makes all
steps of an episode: the small matrix stays in registers, and steps of their own would be two launches each, which cost
more than the arithmetic. The kernels are written in Pallas for its Triton back end; `interpret` runs them on a CPU, for
the tests. The number of cells must be a power of two.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any, Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu
from jaxtyping import Array, Bool, Float, Key

from paircredit.errors import refuse_unknown
from paircredit.networks.layers import Dense

CellStart = Literal["closed", "xavier"]
UNROLL = 8
"""Steps per iteration of the compiled loop on a GPU, where a step is two tiny kernels."""
MOST_CELLS = 128
"""Cells up to which `auto` takes the kernel, whose matrix stays in registers."""
ScanBackend = Literal["auto", "loop", "kernel", "interpreted kernel"]
WARPS = 4


class AdditiveCell(eqx.Module):
    """An LSTM without forget and output gate: c_t = c_{t−1} + sigmoid(c_{t−1} R + b_i) · tanh(x_t W + b_z).

    The cell input sees the step alone and the gate the past alone, so whatever a step adds to the memory stays there
    and can be told from what the others added. The memory is also the output.
    """

    candidate: Dense
    gate: Dense

    @classmethod
    def random(cls, key: Key[Array, ""], inputs: int, cells: int, start: CellStart = "closed") -> AdditiveCell:
        """A cell of width `cells` at its start; biases vary by 1.

        `closed`: weights of deviation 0.1 and gates that let one part in 20 in (RUDDER's demonstration). `xavier`:
        weights of Xavier's deviation and gates half open (RUDDER's tutorial).
        """
        refuse_unknown("start of the cell", start, get_args(CellStart))
        keys = jax.random.split(key, 4)

        def layer(weight: Array, bias: Array, rows: int, centre: float) -> Dense:
            deviation = 0.1 if start == "closed" else (2.0 / (rows + cells)) ** 0.5
            return Dense(
                deviation * jax.random.normal(weight, (rows, cells), dtype=float),
                centre + jax.random.normal(bias, (cells,), dtype=float),
            )

        return cls(
            layer(keys[0], keys[1], inputs, 0.0),
            layer(keys[2], keys[3], cells, -3.0 if start == "closed" else 0.0),
        )

    def __call__(
        self, steps: Float[Array, "T D"], valid: Bool[Array, " T"], memory: Float[Array, " C"]
    ) -> Float[Array, "T C"]:
        """The memory after every step, given that before the first; padding adds nothing."""
        return additive_scan(self._candidates(steps, valid), self.gate.weight, self.gate.bias, memory)

    def stream(
        self,
        steps: Float[Array, "T D"],
        valid: Bool[Array, " T"],
        starts: Bool[Array, " T"],
        memory: Float[Array, " C"],
    ) -> Float[Array, "T C"]:
        """The memory after every step of several sequences in a row: each starts with an empty memory."""

        def step(before: Array, now: tuple[Array, Array]) -> tuple[Array, Array]:
            candidate, start = now
            before = jnp.where(start, 0.0, before)
            after = before + jax.nn.sigmoid(self.gate(before)) * candidate
            return after, after

        return jax.lax.scan(step, memory, (self._candidates(steps, valid), starts), unroll=unroll())[1]

    def _candidates(self, steps: Array, valid: Array) -> Array:
        return jnp.where(valid[:, None], jnp.tanh(self.candidate(steps)), 0.0)


def additive_scan(
    candidates: Float[Array, "T C"],
    weight: Float[Array, "C C"],
    bias: Float[Array, " C"],
    start: Float[Array, " C"],
    backend: ScanBackend = "auto",
) -> Float[Array, "T C"]:
    """c_t = c_{t−1} + sigmoid(c_{t−1} R + b) · z_t for every step t: candidates z, weight R, bias b, start c_{−1}.

    In the derivative, by hand, one small product per step goes back through time, and the gradients of R and b are
    taken of all steps at once. Back ends: `loop`, a compiled loop of small operations; `kernel`, all steps in one GPU
    kernel; `auto`, the kernel where it can run, which is three times as fast (tools/benchmarks/additive_scan.py).
    """
    return _scan(_choose(candidates) if backend == "auto" else backend, candidates, weight, bias, start)


def _choose(candidates: Array) -> ScanBackend:
    cells = candidates.shape[-1]
    fit = cells <= MOST_CELLS and cells & (cells - 1) == 0 and candidates.dtype == jnp.float32
    return "kernel" if fit and jax.default_backend() == "gpu" else "loop"


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _scan(backend: ScanBackend, candidates: Array, weight: Array, bias: Array, start: Array) -> Array:
    if backend != "loop":
        return _call(_forward_kernel, backend, candidates, weight, bias, start)

    def step(memory: Array, candidate: Array) -> tuple[Array, Array]:
        memory = memory + jax.nn.sigmoid(memory @ weight + bias) * candidate
        return memory, memory

    return jax.lax.scan(step, start, candidates, unroll=unroll())[1]


def _forward(
    backend: ScanBackend, candidates: Array, weight: Array, bias: Array, start: Array
) -> tuple[Array, tuple[Array, ...]]:
    memories = _scan(backend, candidates, weight, bias, start)
    return memories, (candidates, weight, bias, start, memories)


def _backward(backend: ScanBackend, kept: tuple[Array, ...], received: Array) -> tuple[Array, Array, Array, Array]:
    candidates, weight, bias, start, memories = kept
    before = jnp.concatenate([start[None], memories[:-1]])
    gates = jax.nn.sigmoid(before @ weight + bias)
    slopes = gates * (1 - gates) * candidates
    totals = _totals(backend, received, slopes, weight)
    through_gates = totals * slopes
    d_start = totals[0] + through_gates[0] @ weight.T
    return totals * gates, before.T @ through_gates, jnp.sum(through_gates, axis=0), d_start


def _totals(backend: ScanBackend, received: Array, slopes: Array, weight: Array) -> Array:
    """The derivative with respect to every memory, through all that follows it."""
    if backend != "loop":
        return _call(_backward_kernel, backend, received, slopes, weight)

    def step(later: Array, here: tuple[Array, Array]) -> tuple[Array, Array]:
        own, slope = here
        total = later + own
        return total + (total * slope) @ weight.T, total

    return jax.lax.scan(step, jnp.zeros_like(slopes[0]), (received, slopes), reverse=True, unroll=unroll())[1]


def unroll() -> int:
    """Steps per iteration of the compiled loop on this device."""
    return UNROLL if jax.default_backend() == "gpu" else 1


_scan.defvjp(_forward, _backward)


def _forward_kernel(steps: int, candidates: Any, weight: Any, bias: Any, start: Any, memories: Any) -> None:
    matrix, offset = weight[...], bias[...]

    def step(t: Array, memory: Array) -> Array:
        gate = jax.nn.sigmoid(jnp.sum(memory[:, None] * matrix, axis=0) + offset)
        memory = memory + gate * candidates[t, :]
        memories[t, :] = memory
        return memory

    jax.lax.fori_loop(0, steps, step, start[...])


def _backward_kernel(steps: int, received: Any, slopes: Any, weight: Any, totals: Any) -> None:
    """From the derivative that each memory receives directly, and that of its addition by the argument of its gate."""
    matrix = weight[...]

    def step(number: Array, later: Array) -> Array:
        t = steps - 1 - number
        total = later + received[t, :]
        totals[t, :] = total
        return total + jnp.sum((total * slopes[t, :])[None, :] * matrix, axis=1)

    jax.lax.fori_loop(0, steps, step, jnp.zeros((matrix.shape[0],), dtype=matrix.dtype))


def _call(kernel: Any, backend: ScanBackend, steps: Array, *others: Array) -> Array:
    """A kernel whose first input has a row per step, as has its output."""
    output = jax.ShapeDtypeStruct(steps.shape, steps.dtype)
    return triton_call(partial(kernel, len(steps)), output, backend != "kernel", WARPS, 1, steps, *others)


def triton_call(
    kernel: Any, outputs: Any, interpret: bool, warps: int, stages: int, *inputs: Array, grid: int | None = None
) -> Any:
    """What a kernel makes of arrays, which each of its programs sees whole; on a GPU or, interpreted, on a CPU."""
    with warnings.catch_warnings():  # JAX prefers its newer GPU back end, which does not run such loops well
        warnings.filterwarnings("ignore", message=".*Pallas Triton.*", category=DeprecationWarning)
        return pl.pallas_call(
            kernel,
            outputs,
            grid=() if grid is None else (grid,),
            interpret=interpret,
            compiler_params=plgpu.CompilerParams(num_warps=warps, num_stages=stages),
        )(*inputs)
