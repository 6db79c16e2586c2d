"""The one thing in an additive cell that must go step by step, and its derivative, with nothing else in the loop."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

UNROLL = 8
"""Steps per iteration of the compiled loop on a GPU, where a step is two tiny kernels."""


@jax.custom_vjp
def additive_scan(
    candidates: Float[Array, "T C"], weight: Float[Array, "C C"], bias: Float[Array, " C"], start: Float[Array, " C"]
) -> Float[Array, "T C"]:
    """c_t = c_{t−1} + sigmoid(c_{t−1} R + b) · z_t, all of them.

    The derivative is written by hand: one small product per step goes back through time, and the gradients of R and b
    are taken of all steps at once, which automatic differentiation would do step by step.

    Args:
        candidates: z.
        weight: R.
        bias: b.
        start: c before the first step.
    """

    def step(memory: Array, candidate: Array) -> tuple[Array, Array]:
        memory = memory + jax.nn.sigmoid(memory @ weight + bias) * candidate
        return memory, memory

    return jax.lax.scan(step, start, candidates, unroll=unroll())[1]


def _forward(candidates: Array, weight: Array, bias: Array, start: Array) -> tuple[Array, tuple[Array, ...]]:
    memories = additive_scan(candidates, weight, bias, start)
    return memories, (candidates, weight, bias, start, memories)


def _backward(kept: tuple[Array, ...], received: Array) -> tuple[Array, Array, Array, Array]:
    candidates, weight, bias, start, memories = kept
    before = jnp.concatenate([start[None], memories[:-1]])
    gates = jax.nn.sigmoid(before @ weight + bias)
    slopes = gates * (1 - gates) * candidates

    def step(later: Array, here: tuple[Array, Array]) -> tuple[Array, Array]:
        own, slope = here
        total = later + own
        return total + (total * slope) @ weight.T, total

    d_start, totals = jax.lax.scan(step, jnp.zeros_like(start), (received, slopes), reverse=True, unroll=unroll())
    through_gates = totals * slopes
    return totals * gates, before.T @ through_gates, jnp.sum(through_gates, axis=0), d_start


def unroll() -> int:
    """Steps per iteration of the compiled loop."""
    return UNROLL if jax.default_backend() == "gpu" else 1


additive_scan.defvjp(_forward, _backward)
