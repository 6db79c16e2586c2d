"""The one thing in an additive cell that must go step by step, and its derivative, with nothing else in the loop."""

from __future__ import annotations

from functools import partial
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from paircredit.networks.additive_kernel import kernel_backward, kernel_forward

UNROLL = 8
"""Steps per iteration of the compiled loop on a GPU, where a step is two tiny kernels."""
MOST_CELLS = 128
"""For `auto` to take the kernel, whose matrix stays in registers."""
ScanBackend = Literal["auto", "loop", "kernel", "interpreted kernel"]


def additive_scan(
    candidates: Float[Array, "T C"],
    weight: Float[Array, "C C"],
    bias: Float[Array, " C"],
    start: Float[Array, " C"],
    backend: ScanBackend = "auto",
) -> Float[Array, "T C"]:
    """c_t = c_{t−1} + sigmoid(c_{t−1} R + b) · z_t, all of them.

    The derivative is written by hand: one small product per step goes back through time, and the gradients of R and b
    are taken of all steps at once, which automatic differentiation would do step by step.

    Args:
        candidates: z.
        weight: R.
        bias: b.
        start: c before the first step.
        backend: `loop`, a compiled loop of small operations; `kernel`, all steps in one GPU kernel; `auto`, the kernel
            where it can run, which is three times as fast as the loop (tools/benchmarks/additive_scan.py).
    """
    return _scan(_choose(candidates) if backend == "auto" else backend, candidates, weight, bias, start)


def _choose(candidates: Array) -> ScanBackend:
    cells = candidates.shape[-1]
    fit = cells <= MOST_CELLS and cells & (cells - 1) == 0 and candidates.dtype == jnp.float32
    return "kernel" if fit and jax.default_backend() == "gpu" else "loop"


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _scan(backend: ScanBackend, candidates: Array, weight: Array, bias: Array, start: Array) -> Array:
    if backend != "loop":
        return kernel_forward(candidates, weight, bias, start, interpret=backend == "interpreted kernel")

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
        return kernel_backward(received, slopes, weight, interpret=backend == "interpreted kernel")

    def step(later: Array, here: tuple[Array, Array]) -> tuple[Array, Array]:
        own, slope = here
        total = later + own
        return total + (total * slope) @ weight.T, total

    return jax.lax.scan(step, jnp.zeros_like(slopes[0]), (received, slopes), reverse=True, unroll=unroll())[1]


def unroll() -> int:
    """Steps per iteration of the compiled loop."""
    return UNROLL if jax.default_backend() == "gpu" else 1


_scan.defvjp(_forward, _backward)
