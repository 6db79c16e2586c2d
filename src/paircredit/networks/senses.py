"""The perception module for what an environment shows: pictures small or large, vectors, or numbered states."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from paircredit.envs.protocol import Discrete, Pixels, Vector
from paircredit.networks.embedding import StateEmbedding
from paircredit.networks.layers import Dense
from paircredit.networks.nature import SMALLEST, NaturePerception
from paircredit.networks.perception import Perception
from paircredit.networks.spec import NetworkSpec


class VectorPerception(eqx.Module):
    """dense – dense, ReLU behind each (paper, bsuite appendix)."""

    first: Dense
    last: Dense

    @classmethod
    def random(cls, key: Key[Array, ""], shown: Vector, spec: NetworkSpec) -> VectorPerception:
        """Fan-in normal weights, biases of 0; numbers that are padding do not count as inputs."""
        below, top = jax.random.split(key)
        first = Dense.random(below, shown.size, spec.trunk[0])
        if shown.own is not None:
            first = Dense(first.weight * jnp.sqrt(shown.size / shown.own), first.bias)
        return cls(first, Dense.random(top, *spec.trunk))

    def __call__(self, observation: Float[Array, " size"]) -> Float[Array, " D"]:
        """The features of one observation."""
        return jax.nn.relu(self.last(jax.nn.relu(self.first(observation))))

    def of_change(self, observation: Float[Array, " size"], before: Float[Array, " size"]) -> Float[Array, " D"]:
        """The features of what changed between two observations."""
        return self(observation - before)


def perception_of(key: Key[Array, ""], shown: Discrete | Pixels | Vector, spec: NetworkSpec) -> Any:
    """From one observation to a vector of `spec.trunk[1]` features."""
    if isinstance(shown, Pixels) and min(shown.height, shown.width) >= SMALLEST:
        return NaturePerception.random(key, shown, spec)
    if isinstance(shown, Pixels):
        return Perception.random(key, shown, spec)
    if isinstance(shown, Vector):
        return VectorPerception.random(key, shown, spec)
    return StateEmbedding.random(key, shown.size, spec)
