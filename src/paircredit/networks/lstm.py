"""A long short-term memory cell whose four gates are one matrix product."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from paircredit.networks.layers import Dense

FORGET_BIAS = 1.0
"""Added to the forget gate, so that a fresh cell remembers (our choice, as is usual)."""


class CellState(NamedTuple):
    """What an LSTM carries from step to step."""

    output: Float[Array, " C"]
    cell: Float[Array, " C"]


class LSTM(eqx.Module):
    """c' = σ(f + 1) c + σ(i) tanh(g), output' = σ(o) tanh(c'), where (i, g, f, o) = [x, output] W + b."""

    gates: Dense

    @classmethod
    def random(cls, key: Key[Array, ""], inputs: int, width: int) -> LSTM:
        """Fan-in normal weights, biases of 0."""
        return cls(Dense.random(key, inputs + width, 4 * width))

    def initial_state(self) -> CellState:
        """All zeros."""
        zeros = jnp.zeros((self.gates.bias.shape[0] // 4,), dtype=self.gates.bias.dtype)
        return CellState(zeros, zeros)

    def __call__(self, x: Float[Array, " inputs"], state: CellState) -> CellState:
        """One step."""
        into, candidate, keep, out = jnp.split(self.gates(jnp.concatenate([x, state.output])), 4)
        cell = jax.nn.sigmoid(keep + FORGET_BIAS) * state.cell + jax.nn.sigmoid(into) * jnp.tanh(candidate)
        return CellState(jax.nn.sigmoid(out) * jnp.tanh(cell), cell)
