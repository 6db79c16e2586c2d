"""Perception modules: from what an environment shows to a vector of features.

`perception_of` chooses one: the paper's for small pictures, that of Mnih et al. (2015) for large ones, two dense layers
for vectors, and an embedding for numbered states, where a method needs more than a table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from paircredit.envs.protocol import Discrete, Pixels, Vector
from paircredit.networks.layers import (
    Conv3x3,
    Dense,
    NetworkSpec,
    Precision,
    RowMatrix,
    dtype_between_layers,
    fan_in_normal,
)
from paircredit.types import PixelObservation, PyTree

LAYERS = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
"""Filters, size and stride of the convolutions for large pictures."""
SMALLEST = 36
"""Pixels that a picture needs each way, so that the last of these convolutions has something left to see."""
PerceptionModule = Callable[[PyTree], Float[Array, " D"]]
"""A module that makes features of one observation."""


def perception_of(key: Key[Array, ""], shown: Discrete | Pixels | Vector, network: NetworkSpec) -> PerceptionModule:
    """A module that maps one observation to `network.trunk[1]` features."""
    if isinstance(shown, Pixels) and min(shown.height, shown.width) >= SMALLEST:
        return NaturePerception.random(key, shown, network)
    if isinstance(shown, Pixels):
        return Perception.random(key, shown, network)
    if isinstance(shown, Vector):
        return VectorPerception.random(key, shown, network)
    return StateEmbedding.random(key, shown.size, network)


class Perception(eqx.Module):
    """conv 3×3 – conv 3×3 – dense – (flags join) – dense – dense, each followed by ReLU (paper, KtD appendix).

    The flags have a matrix of their own where they join: the sum is that of one layer on both, and no matrix has an odd
    number of rows, which GPUs are slow at.
    """

    first: Conv3x3 | RowMatrix
    second: Conv3x3 | RowMatrix
    picture: Dense
    joined: Dense
    flags: Float[Array, "F joined"]
    last: Dense
    precision: Precision = eqx.field(static=True)

    @classmethod
    def random(cls, key: Key[Array, ""], shape: Pixels, network: NetworkSpec) -> Perception:
        keys = jax.random.split(key, 5)
        one, two = network.filters
        joined = Dense.random(keys[3], network.picture_width + shape.flags, network.trunk[0])
        return cls(
            first=Conv3x3.random(keys[0], shape.width, shape.channels, one),
            second=Conv3x3.random(keys[1], shape.width, one, two),
            picture=Dense.random(keys[2], shape.height * shape.width * two, network.picture_width),
            joined=Dense(joined.weight[: network.picture_width], joined.bias),
            flags=joined.weight[network.picture_width :],
            last=Dense.random(keys[4], network.trunk[0], network.trunk[1]),
            precision=network.precision,
        )

    def _dtype(self) -> jnp.dtype:
        return dtype_between_layers(self.precision, self.flags.dtype)

    def prepared(self) -> Perception:
        """The same function with its matrices written out."""
        if not isinstance(self.first, Conv3x3) or not isinstance(self.second, Conv3x3):
            return self
        dtype = self._dtype()
        first, second = self.first.as_matrix(dtype), self.second.as_matrix(dtype)
        picture, joined, last = jax.tree.map(lambda x: x.astype(dtype), (self.picture, self.joined, self.last))
        return Perception(first, second, picture, joined, self.flags, last, self.precision)

    def __call__(self, observation: PixelObservation) -> Float[Array, " D"]:
        dtype = self._dtype()
        pixels = observation.pixels.astype(dtype)
        x = pixels.reshape(pixels.shape[0], -1) * jnp.asarray(1 / 255, dtype=dtype)
        x = jax.nn.relu(self.second(jax.nn.relu(self.first(x))))
        x = jax.nn.relu(self.picture(x.reshape(-1)))
        x = jax.nn.relu(self.joined(x) + (observation.flags.astype(dtype) @ self.flags.astype(dtype)))
        return jax.nn.relu(self.last(x)).astype(self.flags.dtype)


def prepare(tree: Any) -> Any:
    """The same functions, with the matrices of every `Perception` written out, before they are used in a loop."""

    def found(node: Any) -> bool:
        return isinstance(node, Perception)

    return jax.tree.map(lambda node: node.prepared() if found(node) else node, tree, is_leaf=found)


class StridedConvolution(eqx.Module):
    """A convolution without padding, as patches times a matrix: one well-shaped product also with a member axis.

    Rows of the matrix belong to (block row, block column, row in the block, column in the block, channel), where a
    block is a square of `stride` pixels.
    """

    matrix: Dense
    size: int = eqx.field(static=True)
    stride: int = eqx.field(static=True)

    @classmethod
    def random(cls, key: Key[Array, ""], channels: int, filters: int, size: int, stride: int) -> StridedConvolution:
        """Orthogonal weights, biases of 0."""
        return cls(_orthogonal(key, size * size * channels, filters), size, stride)

    def __call__(self, x: Float[Array, "H W C"]) -> Float[Array, "h w F"]:
        return self.matrix(self.patches(x))

    def patches(self, x: Float[Array, "H W C"]) -> Float[Array, "h w P"]:
        """All patches of a picture, each a few neighbouring blocks. Pixels that fill no block are left out."""
        s, across = self.stride, self.size // self.stride
        rows, columns, channels = x.shape[0] // s, x.shape[1] // s, x.shape[2]
        blocks = x[: rows * s, : columns * s].reshape(rows, s, columns, s, channels)
        blocks = blocks.swapaxes(1, 2).reshape(rows, columns, s * s * channels)
        high, wide = rows - across + 1, columns - across + 1
        shifted = [blocks[i : i + high, j : j + wide] for i in range(across) for j in range(across)]
        return jnp.concatenate(shifted, axis=-1)


class NaturePerception(eqx.Module):
    """conv 8×8/4 – conv 4×4/2 – conv 3×3/1 – dense, each followed by ReLU (Mnih et al. 2015; paper, Atari appendix)."""

    convolutions: tuple[StridedConvolution, ...]
    dense: Dense
    precision: Precision = eqx.field(static=True)

    @classmethod
    def random(cls, key: Key[Array, ""], shape: Pixels, network: NetworkSpec) -> NaturePerception:
        """Orthogonal weights, biases of 0; `network.trunk[1]` features."""
        keys = jax.random.split(key, len(LAYERS) + 1)
        convolutions, high, wide, channels = [], shape.height, shape.width, shape.channels
        for own, (filters, size, stride) in zip(keys, LAYERS, strict=False):
            convolutions.append(StridedConvolution.random(own, channels, filters, size, stride))
            high, wide, channels = (high - size) // stride + 1, (wide - size) // stride + 1, filters
        return cls(
            tuple(convolutions), _orthogonal(keys[-1], high * wide * channels, network.trunk[1]), network.precision
        )

    def __call__(self, observation: PixelObservation) -> Float[Array, " D"]:
        dtype = dtype_between_layers(self.precision, self.dense.weight.dtype)
        x = observation.pixels.astype(dtype) * jnp.asarray(1 / 255, dtype=dtype)
        for convolution in self.convolutions:
            x = jax.nn.relu(convolution(x))
        return jax.nn.relu(self.dense(x.reshape(-1))).astype(self.dense.weight.dtype)


def _orthogonal(key: Key[Array, ""], inputs: int, outputs: int) -> Dense:
    """Orthogonal weights of gain √2, as the old baselines have them (the paper does not say).

    Pictures of a game hardly differ, and with a gain of 1 every ReLU would halve the variance that is left.
    """
    dtype = jax.dtypes.canonicalize_dtype(float)
    draw = jax.nn.initializers.orthogonal(2**0.5)
    # Members one after another: several batches of QR decompositions in one program wait for each other for ever on a
    # CPU with few cores (jaxlib 0.10.2).
    alone = jax.custom_batching.sequential_vmap(lambda own: draw(own, (inputs, outputs), dtype))
    return Dense(alone(key), jnp.zeros((outputs,), dtype=float))


class VectorPerception(eqx.Module):
    """dense – dense, each followed by ReLU (paper, bsuite appendix)."""

    first: Dense
    last: Dense

    @classmethod
    def random(cls, key: Key[Array, ""], shown: Vector, network: NetworkSpec) -> VectorPerception:
        """Fan-in normal weights, biases of 0; numbers that are padding do not count as inputs."""
        below, top = jax.random.split(key)
        first = Dense.random(below, shown.size, network.trunk[0])
        if shown.own is not None:
            first = Dense(first.weight * jnp.sqrt(shown.size / shown.own), first.bias)
        return cls(first, Dense.random(top, *network.trunk))

    def __call__(self, observation: Float[Array, " size"]) -> Float[Array, " D"]:
        return jax.nn.relu(self.last(jax.nn.relu(self.first(observation))))


class StateEmbedding(eqx.Module):
    """A row of numbers per state and one dense layer, for methods that need features of numbered states."""

    table: Float[Array, "S D"]
    last: Dense

    @classmethod
    def random(cls, key: Key[Array, ""], num_states: int, network: NetworkSpec) -> StateEmbedding:
        """Rows of deviation 1; a dense layer with fan-in normal weights."""
        below, top = jax.random.split(key)
        width = network.trunk[1]
        return cls(fan_in_normal(below, (num_states, width), 1), Dense.random(top, width, width))

    def __call__(self, observation: Int[Array, ""]) -> Float[Array, " D"]:
        return jax.nn.relu(self.last(self.table[observation]))


def of_change(perception: PerceptionModule, observation: PyTree, before: PyTree) -> Float[Array, " D"]:
    """The features of what changed between two observations: of the difference of all numbers that they hold.

    Of pictures those are differences of bytes, exact even in bfloat16; of numbered states, of two one-hot vectors.
    """
    if isinstance(perception, StateEmbedding):
        return jax.nn.relu(perception.last(perception.table[observation] - perception.table[before]))
    return perception(jax.tree.map(lambda now, then: now.astype(float) - then.astype(float), observation, before))
