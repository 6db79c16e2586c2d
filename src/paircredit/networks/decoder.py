"""From a code back to the observation it was made of: what an agent reconstructs, its code must keep."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from paircredit.envs.protocol import Pixels
from paircredit.networks.layers import Conv3x3, Dense
from paircredit.networks.spec import NetworkSpec
from paircredit.types import PixelObservation


class PictureDecoder(eqx.Module):
    """dense – (transposed) conv 3×3 – (transposed) conv 3×3: the perception module's convolutions, mirrored.

    A transposed convolution of stride 1 that keeps its size is a convolution. The flags are not reconstructed: the
    paper does not say, and the original has none.
    """

    first: Dense
    second: Conv3x3
    last: Conv3x3

    @classmethod
    def random(cls, key: Key[Array, ""], width: int, shape: Pixels, spec: NetworkSpec) -> PictureDecoder:
        """Fan-in normal weights, biases of 0."""
        keys = jax.random.split(key, 3)
        one, two = spec.filters
        return cls(
            first=Dense.random(keys[0], width, shape.height * shape.width * two),
            second=Conv3x3.random(keys[1], shape.width, two, one),
            last=Conv3x3.random(keys[2], shape.width, one, shape.channels),
        )

    def __call__(self, code: Float[Array, " W"]) -> Float[Array, "rows columns"]:
        """Logits of every number of the picture, rows lying flat: [height, width · channels]."""
        filters = self.second.weight.shape[2]
        x = jax.nn.relu(self.first(code)).reshape(-1, self.second.width * filters)
        return self.last(jax.nn.relu(self.second(x)))

    def error(self, code: Float[Array, " W"], observation: PixelObservation) -> Float[Array, ""]:
        """Mean cross-entropy of the picture's numbers, read as probabilities (0 to 1)."""
        logits = self(code)
        target = observation.pixels.reshape(logits.shape).astype(logits.dtype) / 255
        return jnp.mean(jax.nn.softplus(logits) - logits * target)


class VectorDecoder(eqx.Module):
    """One linear layer: the vector itself."""

    numbers: Dense

    @classmethod
    def random(cls, key: Key[Array, ""], width: int, size: int) -> VectorDecoder:
        """Fan-in normal weights, biases of 0."""
        return cls(Dense.random(key, width, size))

    def __call__(self, code: Float[Array, " W"]) -> Float[Array, " size"]:
        """The vector."""
        return self.numbers(code)

    def error(self, code: Float[Array, " W"], observation: Float[Array, " size"]) -> Float[Array, ""]:
        """Half the squared distance."""
        return 0.5 * jnp.sum(jnp.square(self(code) - observation))


class StateDecoder(eqx.Module):
    """One linear layer: which of the numbered states it was."""

    logits: Dense

    @classmethod
    def random(cls, key: Key[Array, ""], width: int, num_states: int) -> StateDecoder:
        """Fan-in normal weights, biases of 0."""
        return cls(Dense.random(key, width, num_states))

    def __call__(self, code: Float[Array, " W"]) -> Float[Array, " S"]:
        """Logits of the states."""
        return self.logits(code)

    def error(self, code: Float[Array, " W"], observation: Int[Array, ""]) -> Float[Array, ""]:
        """Cross-entropy of the state."""
        return -jax.nn.log_softmax(self(code))[observation]
