"""Policy and value networks: a perception module and one linear layer each, or one module below two layers."""

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


class SharedNetwork(eqx.Module):
    """Policy and value on one perception module. As a function it is the policy; `critic` is the value function."""

    perception: Any
    head: Dense
    value_head: Dense

    @classmethod
    def random(
        cls, key: Key[Array, ""], shape: Pixels | Vector, spec: NetworkSpec, num_actions: int, scale: float = 1.0
    ) -> SharedNetwork:
        """Fan-in normal weights; those of the policy's last layer times `scale`."""
        policy = PolicyNetwork.random(key, shape, spec, num_actions, scale)
        value_head = Dense.random(jax.random.fold_in(key, 1), spec.trunk[1], 1)
        return cls(policy.perception, policy.head, value_head)

    def __call__(self, observation: PyTree) -> Float[Array, " A"]:
        """The logits of one observation."""
        return self.head(self.perception(observation))

    @property
    def critic(self) -> ValueNetwork:
        """The value function."""
        return ValueNetwork(self.perception, self.value_head)


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
