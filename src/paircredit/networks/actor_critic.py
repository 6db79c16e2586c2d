"""Policy and value networks: a perception module and one linear layer each, nothing shared."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Float, Key

from paircredit.envs.protocol import Pixels, Vector
from paircredit.networks.layers import Dense
from paircredit.networks.senses import perception_of
from paircredit.networks.spec import NetworkSpec
from paircredit.types import PyTree


class PolicyNetwork(eqx.Module):
    """Logits of the actions."""

    perception: Any
    head: Dense

    @classmethod
    def random(
        cls, key: Key[Array, ""], shape: Pixels | Vector, spec: NetworkSpec, num_actions: int, scale: float = 1.0
    ) -> PolicyNetwork:
        """Fan-in normal weights; those of the last layer times `scale`."""
        below, top = jax.random.split(key)
        return cls(perception_of(below, shape, spec), Dense.random(top, spec.trunk[1], num_actions, scale))

    def __call__(self, observation: PyTree) -> Float[Array, " A"]:
        """The logits of one observation."""
        return self.head(self.perception(observation))


class ValueNetwork(eqx.Module):
    """One number; its features also serve a pair network."""

    perception: Any
    head: Dense

    @classmethod
    def random(cls, key: Key[Array, ""], shape: Pixels | Vector, spec: NetworkSpec) -> ValueNetwork:
        """Fan-in normal weights."""
        below, top = jax.random.split(key)
        return cls(perception_of(below, shape, spec), Dense.random(top, spec.trunk[1], 1))

    def features(self, observation: PyTree) -> Float[Array, " D"]:
        """What the last layer sees."""
        return self.perception(observation)

    def __call__(self, observation: PyTree) -> Float[Array, ""]:
        """The value of one observation."""
        return self.head(self.perception(observation))[0]
