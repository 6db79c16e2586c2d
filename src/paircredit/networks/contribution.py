"""Which states bring rewards later, and which states rewards arrive in: the three functions of synthetic returns."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from paircredit.envs.protocol import Discrete, EnvSpec, Pixels, Vector
from paircredit.networks.build import num_states
from paircredit.networks.layers import Dense
from paircredit.networks.senses import perception_of
from paircredit.networks.spec import NetworkSpec
from paircredit.types import PyTree

OUTPUT_SCALE = 0.01
"""Factor on the initial weights of the last layers: nothing is contributed before anything was learned (our choice)."""


class Contribution(NamedTuple):
    """What is known of one state.

    Attributes:
        later: c(s), what it adds to rewards that come later.
        gate: g(s) in (0, 1), how much of what was added before arrives here.
        here: b(s), what arrives here whatever came before.
    """

    later: Float[Array, "*batch"]
    gate: Float[Array, "*batch"]
    here: Float[Array, "*batch"]


class ContributionTable(eqx.Module):
    """One row per function, one column per state."""

    later: Float[Array, " S"]
    gate_logits: Float[Array, " S"]
    here: Float[Array, " S"]

    def __call__(self, observation: Int[Array, ""]) -> Contribution:
        """What is known of one state."""
        gate = jax.nn.sigmoid(self.gate_logits[observation])
        return Contribution(self.later[observation], gate, self.here[observation])


class Head(eqx.Module):
    """dense – dense – one number, ReLU between."""

    first: Dense
    second: Dense
    last: Dense

    @classmethod
    def random(cls, key: Key[Array, ""], inputs: int, width: int) -> Head:
        """Fan-in normal weights, small ones in the last layer."""
        keys = jax.random.split(key, 3)
        return cls(
            Dense.random(keys[0], inputs, width),
            Dense.random(keys[1], width, width),
            Dense.random(keys[2], width, 1, OUTPUT_SCALE),
        )

    def __call__(self, features: Float[Array, " D"]) -> Float[Array, ""]:
        """The number."""
        return self.last(jax.nn.relu(self.second(jax.nn.relu(self.first(features)))))[0]


class ContributionNetwork(eqx.Module):
    """A perception module and three heads above it.

    The head of c sees the features as constants: they stand for the memories of an agent, which keep no gradient. The
    perception module learns from what the other two heads say of the state at hand.
    """

    perception: Any
    later: Head
    gate: Head
    here: Head

    @classmethod
    def random(cls, key: Key[Array, ""], shape: Pixels | Vector, spec: NetworkSpec, width: int) -> ContributionNetwork:
        """Fan-in normal weights; c and b near 0, g near ½."""
        keys = jax.random.split(key, 4)
        heads = (Head.random(one, spec.trunk[1], width) for one in keys[1:])
        return cls(perception_of(keys[0], shape, spec), *heads)

    def __call__(self, observation: PyTree) -> Contribution:
        """What is known of one observation."""
        features = self.perception(observation)
        later = self.later(jax.lax.stop_gradient(features))
        return Contribution(later, jax.nn.sigmoid(self.gate(features)), self.here(features))


def contribution_for(key: Key[Array, ""], spec: EnvSpec, network: NetworkSpec, width: int) -> Any:
    """Contributions of 0 or nearly so: tables, or networks where these do not fit.

    Args:
        key: of the initial parameters.
        spec: of the environment.
        network: sizes of the perception module.
        width: units of the layers of each head.
    """
    if not isinstance(spec.observation, Discrete):
        return ContributionNetwork.random(key, spec.observation, network, width)
    return ContributionTable(*(jnp.zeros((num_states(spec),), dtype=float) for _ in range(3)))
