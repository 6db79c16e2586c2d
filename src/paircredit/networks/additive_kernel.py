"""GPU kernels for the recurrence of an additive cell: all steps of an episode in one program.

A step is a product of one vector with one small matrix, which stays in registers; as operations of their own the steps
would be two launches each, which cost more than the arithmetic. Written in Pallas for its Triton back end; `interpret`
runs the same kernels on a CPU, for the tests. The number of cells must be a power of two.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu
from jaxtyping import Array, Float

WARPS = 4
"""Warps per program."""


def kernel_forward(
    candidates: Float[Array, "T C"],
    weight: Float[Array, "C C"],
    bias: Float[Array, " C"],
    start: Float[Array, " C"],
    interpret: bool = False,
) -> Float[Array, "T C"]:
    """The memory after every step."""
    return _call(partial(_forward_kernel, candidates.shape[0]), candidates, interpret, candidates, weight, bias, start)


def kernel_backward(
    received: Float[Array, "T C"], slopes: Float[Array, "T C"], weight: Float[Array, "C C"], interpret: bool = False
) -> Float[Array, "T C"]:
    """The derivative with respect to every memory, given what each receives and how its gate's argument acts."""
    return _call(partial(_backward_kernel, slopes.shape[0]), slopes, interpret, received, slopes, weight)


def _forward_kernel(steps: int, candidates: Any, weight: Any, bias: Any, start: Any, memories: Any) -> None:
    matrix, offset = weight[...], bias[...]

    def step(t: Array, memory: Array) -> Array:
        gate = jax.nn.sigmoid(jnp.sum(memory[:, None] * matrix, axis=0) + offset)
        memory = memory + gate * candidates[t, :]
        memories[t, :] = memory
        return memory

    jax.lax.fori_loop(0, steps, step, start[...])


def _backward_kernel(steps: int, received: Any, slopes: Any, weight: Any, totals: Any) -> None:
    matrix = weight[...]

    def step(number: Array, later: Array) -> Array:
        t = steps - 1 - number
        total = later + received[t, :]
        totals[t, :] = total
        return total + jnp.sum((total * slopes[t, :])[None, :] * matrix, axis=1)

    jax.lax.fori_loop(0, steps, step, jnp.zeros((matrix.shape[0],), dtype=matrix.dtype))


def _call(kernel: Any, like: Array, interpret: bool, *inputs: Array) -> Array:
    with warnings.catch_warnings():  # JAX prefers its newer GPU back end, which has no such loops
        warnings.filterwarnings("ignore", message=".*Pallas Triton.*", category=DeprecationWarning)
        result: Array = pl.pallas_call(
            kernel,
            out_shape=jax.ShapeDtypeStruct(like.shape, like.dtype),
            interpret=interpret,
            compiler_params=plgpu.CompilerParams(num_warps=WARPS, num_stages=1),
        )(*inputs)
    return result
