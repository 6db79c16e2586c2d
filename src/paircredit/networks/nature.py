"""The perception module for Atari: three convolutions and a dense layer (Mnih et al. 2015), as matrix products."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from paircredit.envs.protocol import Pixels
from paircredit.networks.layers import Dense
from paircredit.networks.spec import NetworkSpec, Precision, dtype_between_layers
from paircredit.types import PixelObservation

LAYERS = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
"""Filters, size and stride of the convolutions."""
SMALLEST = 36
"""Pixels that a picture needs each way, so that something is left behind the last one."""


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
        """Every patch times the matrix."""
        return self.matrix(self.patches(x))

    def patches(self, x: Float[Array, "H W C"]) -> Float[Array, "h w P"]:
        """Blocks are rearranged once; a patch is a few neighbouring ones. Pixels that fill no block are left out."""
        s, across = self.stride, self.size // self.stride
        rows, columns, channels = x.shape[0] // s, x.shape[1] // s, x.shape[2]
        blocks = x[: rows * s, : columns * s].reshape(rows, s, columns, s, channels)
        blocks = blocks.swapaxes(1, 2).reshape(rows, columns, s * s * channels)
        high, wide = rows - across + 1, columns - across + 1
        shifted = [blocks[i : i + high, j : j + wide] for i in range(across) for j in range(across)]
        return jnp.concatenate(shifted, axis=-1)


class NaturePerception(eqx.Module):
    """conv 8×8/4 – conv 4×4/2 – conv 3×3/1 – dense, ReLU behind each (paper, Atari appendix)."""

    convolutions: tuple[StridedConvolution, ...]
    dense: Dense
    precision: Precision = eqx.field(static=True)

    @classmethod
    def random(cls, key: Key[Array, ""], shape: Pixels, spec: NetworkSpec) -> NaturePerception:
        """Orthogonal weights, biases of 0; `spec.trunk[1]` features."""
        keys = jax.random.split(key, len(LAYERS) + 1)
        convolutions, high, wide, channels = [], shape.height, shape.width, shape.channels
        for own, (filters, size, stride) in zip(keys, LAYERS, strict=False):
            convolutions.append(StridedConvolution.random(own, channels, filters, size, stride))
            high, wide, channels = (high - size) // stride + 1, (wide - size) // stride + 1, filters
        return cls(tuple(convolutions), _orthogonal(keys[-1], high * wide * channels, spec.trunk[1]), spec.precision)

    def __call__(self, observation: PixelObservation) -> Float[Array, " D"]:
        """The features of one observation."""
        return self._features(observation.pixels.astype(self._dtype()))

    def of_change(self, observation: PixelObservation, before: PixelObservation) -> Float[Array, " D"]:
        """The features of what changed between two observations: pixels as differences, in −1 … 1."""
        dtype = self._dtype()  # differences of bytes are exact even in bfloat16
        return self._features(observation.pixels.astype(dtype) - before.pixels.astype(dtype))

    def _dtype(self) -> jnp.dtype:
        return dtype_between_layers(self.precision, self.dense.weight.dtype)

    def _features(self, pixels: Float[Array, "H W C"]) -> Float[Array, " D"]:
        """Of a picture on the scale of bytes."""
        x = pixels * jnp.asarray(1 / 255, dtype=pixels.dtype)
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
