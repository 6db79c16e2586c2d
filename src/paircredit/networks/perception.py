"""The paper's perception module: from a small picture and some bits to a vector."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from paircredit.envs.protocol import Pixels
from paircredit.networks.layers import Conv3x3, Dense, RowMatrix
from paircredit.networks.spec import NetworkSpec, Precision, dtype_between_layers
from paircredit.types import PixelObservation


class Perception(eqx.Module):
    """conv 3×3 – conv 3×3 – dense – (flags join) – dense – dense, ReLU behind each (paper, KtD appendix).

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
    def random(cls, key: Key[Array, ""], shape: Pixels, spec: NetworkSpec) -> Perception:
        """Fan-in normal weights, biases of 0."""
        keys = jax.random.split(key, 5)
        one, two = spec.filters
        joined = Dense.random(keys[3], spec.picture_width + shape.flags, spec.trunk[0])
        return cls(
            first=Conv3x3.random(keys[0], shape.width, shape.channels, one),
            second=Conv3x3.random(keys[1], shape.width, one, two),
            picture=Dense.random(keys[2], shape.height * shape.width * two, spec.picture_width),
            joined=Dense(joined.weight[: spec.picture_width], joined.bias),
            flags=joined.weight[spec.picture_width :],
            last=Dense.random(keys[4], spec.trunk[0], spec.trunk[1]),
            precision=spec.precision,
        )

    def _dtype(self) -> jnp.dtype:
        return dtype_between_layers(self.precision, self.flags.dtype)

    def prepared(self) -> Perception:
        """The same function with its matrices written out, for applying it in a loop."""
        if not isinstance(self.first, Conv3x3) or not isinstance(self.second, Conv3x3):
            return self
        dtype = self._dtype()
        return Perception(
            self.first.as_matrix(dtype),
            self.second.as_matrix(dtype),
            self.picture.astype(dtype),
            self.joined.astype(dtype),
            self.flags,
            self.last.astype(dtype),
            self.precision,
        )

    def __call__(self, observation: PixelObservation) -> Float[Array, " D"]:
        """The features of one observation."""
        dtype = self._dtype()
        return self._features(observation.pixels.astype(dtype), observation.flags.astype(dtype))

    def of_change(self, observation: PixelObservation, before: PixelObservation) -> Float[Array, " D"]:
        """The features of what changed between two observations: pixels and flags as differences, in −1 … 1."""
        dtype = self._dtype()  # differences of bytes are exact even in bfloat16
        pixels = observation.pixels.astype(dtype) - before.pixels.astype(dtype)
        return self._features(pixels, observation.flags.astype(dtype) - before.flags.astype(dtype))

    def _features(self, pixels: Float[Array, "H W C"], flags: Float[Array, " F"]) -> Float[Array, " D"]:
        """Of a picture on the scale of bytes."""
        dtype = pixels.dtype
        x = pixels.reshape(pixels.shape[0], -1) * jnp.asarray(1 / 255, dtype=dtype)
        x = jax.nn.relu(self.second(jax.nn.relu(self.first(x))))
        x = jax.nn.relu(self.picture(x.reshape(-1)))
        x = jax.nn.relu(self.joined(x) + (flags @ self.flags.astype(dtype)))
        return jax.nn.relu(self.last(x)).astype(self.flags.dtype)
