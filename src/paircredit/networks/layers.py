"""Layers whose parameters are plain arrays, written so that a member axis on the parameters stays cheap; their sizes.

A convolution that is mapped over parameters becomes a grouped convolution, which no library runs well; a matrix product
that is mapped over parameters becomes a batched matrix product, which every library runs well. So convolutions are
written as matrix products here (docs/performance.md has the measurements).
"""

from __future__ import annotations

import dataclasses
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from paircredit.settings import setting

LagEncoding = Literal["one-hot", "scalar", "sinusoidal"]
PairPerception = Literal["auto", "shared", "own"]
PairBackend = Literal["auto", "dense", "tiled", "whole", "kernel"]
Precision = Literal["auto", "float32", "bfloat16"]

FORGET_BIAS = 1.0
"""Added to the forget gate, so that a fresh cell remembers (our choice, as is usual)."""


def dtype_between_layers(precision: Precision, parameters: jnp.dtype) -> jnp.dtype:
    """The type of the numbers between layers, given the type of the parameters."""
    low = precision == "bfloat16" or (precision == "auto" and jax.default_backend() == "gpu")
    return jnp.dtype(jnp.bfloat16) if low else parameters


@dataclasses.dataclass(frozen=True)
class NetworkSpec:
    """Sizes of the networks that are built where tables do not fit; ignored where they do."""

    filters: tuple[int, int] = setting(
        (16, 32), "Filters of the two 3×3 convolutions", "paper, KtD appendix", at_least=1
    )
    picture_width: int = setting(
        512, "Units of the dense layer after the convolutions", "paper, KtD appendix", at_least=1
    )
    trunk: tuple[int, int] = setting(
        (512, 256),
        "Units of the two dense layers after the flags, or of the two there are for vectors",
        "paper, KtD appendix",
        at_least=1,
    )
    shared: bool = setting(
        False,
        "One perception module for policy and value, trained by one optimiser; A2C, A2C-RR and Meta-PWTD can",
        "paper, on Atari",
    )
    pair_perception: PairPerception = setting(
        "auto",
        "Whether the pair network sees what the value network's perception module makes of states, without gradient "
        "(`shared`, for pictures), or has its own (`own`, for vectors)",
        "paper, KtD and bsuite appendices",
    )
    pair_width: int = setting(256, "Channels of the pair network", "paper, KtD appendix", at_least=1)
    lag: LagEncoding = setting(
        "one-hot", "How the pair network sees a time difference", "the paper does not say; see docs/reproduction.md"
    )
    backend: PairBackend = setting(
        "auto", "How the pair network is computed: its kernels on a GPU, tiles elsewhere, or by name", "our choice"
    )
    precision: Precision = setting(
        "auto",
        "Numbers between the layers of policy and value networks: bfloat16 on a GPU, float32 elsewhere, or by name; "
        "parameters, losses and the pair network are float32 always",
        "our choice, see docs/performance.md",
    )


def fan_in_normal(
    key: Key[Array, ""], shape: tuple[int, ...], fan_in: int, scale: float = 1.0
) -> Float[Array, "*shape"]:
    """Normal numbers of deviation scale/√fan_in, cut off at two deviations (the default of Sonnet and Haiku)."""
    return scale / np.sqrt(fan_in) * jax.random.truncated_normal(key, -2.0, 2.0, shape, dtype=float)


class Dense(eqx.Module):
    """x ↦ x W + b."""

    weight: Float[Array, "inputs outputs"]
    bias: Float[Array, " outputs"]

    @classmethod
    def random(cls, key: Key[Array, ""], inputs: int, outputs: int, scale: float = 1.0) -> Dense:
        """Fan-in normal weights and biases of 0."""
        return cls(fan_in_normal(key, (inputs, outputs), inputs, scale), jnp.zeros((outputs,), dtype=float))

    def __call__(self, x: Float[Array, "*batch inputs"]) -> Float[Array, "*batch outputs"]:
        """Apply the layer in the precision of its input."""
        return x @ self.weight.astype(x.dtype) + self.bias.astype(x.dtype)


class Conv3x3(eqx.Module):
    """A 3×3 convolution, stride 1, padded with zeros to keep its size.

    It maps a picture whose rows lie flat, [H, W·channels], to one of the same kind, [H, W·filters].
    """

    weight: Float[Array, "3 3 channels filters"]
    bias: Float[Array, " filters"]
    width: int = eqx.field(static=True)

    @classmethod
    def random(cls, key: Key[Array, ""], width: int, channels: int, filters: int) -> Conv3x3:
        """Fan-in normal weights and biases of 0, for pictures of this width."""
        weight = fan_in_normal(key, (3, 3, channels, filters), 9 * channels)
        return cls(weight, jnp.zeros((filters,), dtype=float), width)

    def as_matrix(self, dtype: jnp.dtype) -> RowMatrix:
        """The layer in the form in which it is computed; make it once if you apply it many times."""
        channels, filters = self.weight.shape[2:]
        shift = np.stack([np.eye(self.width, k=1 - x) for x in range(3)])  # shift[x, source, target]
        band = jnp.einsum("xst,yxcf->ysctf", jnp.asarray(shift, dtype=self.weight.dtype), self.weight)
        matrix = band.reshape(3 * self.width * channels, self.width * filters)
        return RowMatrix(matrix.astype(dtype), jnp.tile(self.bias, self.width).astype(dtype))

    def __call__(self, rows: Float[Array, "H inputs"]) -> Float[Array, "H outputs"]:
        return self.as_matrix(rows.dtype)(rows)


class RowMatrix(eqx.Module):
    """A convolution as a banded matrix [3·W·channels, W·filters] that holds the kernel once per column.

    It multiplies three neighbouring rows side by side: W/3 times the arithmetic of 3×3 patches times a matrix, but one
    well-shaped product and a third of the memory, which is faster on pictures this small.
    """

    matrix: Float[Array, "inputs outputs"]
    bias: Float[Array, " outputs"]

    def __call__(self, rows: Float[Array, "H inputs"]) -> Float[Array, "H outputs"]:
        height, padded = rows.shape[0], jnp.pad(rows, ((1, 1), (0, 0)))
        stacked = jnp.concatenate([padded[y : y + height] for y in range(3)], axis=-1)
        return stacked @ self.matrix + self.bias


class CellState(NamedTuple):
    """The state that an LSTM carries from step to step."""

    output: Float[Array, " C"]
    cell: Float[Array, " C"]


class LSTM(eqx.Module):
    """A long short-term memory cell whose four gates are one matrix product.

    c' = σ(f + 1) c + σ(i) tanh(g), output' = σ(o) tanh(c'), where (i, g, f, o) = [x, output] W + b.

    `equinox.nn.LSTMCell` keeps two matrices, transposed and drawn uniformly: other parameter names and another start
    than kept learners have.
    """

    gates: Dense

    @classmethod
    def random(cls, key: Key[Array, ""], inputs: int, width: int) -> LSTM:
        """Fan-in normal weights, biases of 0."""
        return cls(Dense.random(key, inputs + width, 4 * width))

    def initial_state(self) -> CellState:
        zeros = jnp.zeros((self.gates.bias.shape[0] // 4,), dtype=self.gates.bias.dtype)
        return CellState(zeros, zeros)

    def __call__(self, x: Float[Array, " inputs"], state: CellState) -> CellState:
        into, candidate, keep, out = jnp.split(self.gates(jnp.concatenate([x, state.output])), 4)
        cell = jax.nn.sigmoid(keep + FORGET_BIAS) * state.cell + jax.nn.sigmoid(into) * jnp.tanh(candidate)
        return CellState(jax.nn.sigmoid(out) * jnp.tanh(cell), cell)
