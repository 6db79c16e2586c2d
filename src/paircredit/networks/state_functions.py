"""Functions of a state: policy, value, λ and contribution, each as a table or as a network.

A table serves numbered states: it cannot generalise and therefore cannot confuse. Whatever else an environment shows
goes through a perception module with one linear layer per output on top. Functions named `…_for` choose.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from paircredit.envs.protocol import Discrete, EnvSpec, Pixels, Vector
from paircredit.errors import PaircreditError
from paircredit.networks.layers import Dense, NetworkSpec
from paircredit.networks.perception import PerceptionModule, perception_of
from paircredit.types import PyTree

CONTRIBUTION_SCALE = 0.01
"""Factor on the initial weights of the last layers: nothing contributes before anything was learned (our choice)."""


class ValueFunction(Protocol):
    """A value function, whose features a pair network can share."""

    def __call__(self, observation: PyTree) -> Float[Array, ""]:
        """The value of one observation."""

    def features(self, observation: PyTree) -> Float[Array, " D"] | None:
        """The input of the last layer; None for a table, which has no layers."""


class PolicyTable(eqx.Module):
    """One row of logits per state."""

    logits: Float[Array, "S A"]

    def __call__(self, observation: Int[Array, ""]) -> Float[Array, " A"]:
        return self.logits[observation]


class PolicyNetwork(eqx.Module):
    """Logits of the actions, linear in the features of a perception module."""

    perception: PerceptionModule
    head: Dense

    def __call__(self, observation: PyTree) -> Float[Array, " A"]:
        return self.head(self.perception(observation))


class ValueTable(eqx.Module):
    """One value per state."""

    values: Float[Array, " S"]

    def __call__(self, observation: Int[Array, ""]) -> Float[Array, ""]:
        return self.values[observation]

    def features(self, observation: Int[Array, ""]) -> None:
        return None


class ValueNetwork(eqx.Module):
    """A value, linear in the features of a perception module."""

    perception: PerceptionModule
    head: Dense

    def features(self, observation: PyTree) -> Float[Array, " D"]:
        return self.perception(observation)

    def __call__(self, observation: PyTree) -> Float[Array, ""]:
        return self.head(self.perception(observation))[0]


class SharedNetwork(eqx.Module):
    """Policy and value on one perception module. As a function it is the policy; `critic` is the value function."""

    perception: PerceptionModule
    head: Dense
    value_head: Dense

    def __call__(self, observation: PyTree) -> Float[Array, " A"]:
        return self.head(self.perception(observation))

    @property
    def critic(self) -> ValueNetwork:
        return ValueNetwork(self.perception, self.value_head)


class LambdaTable(eqx.Module):
    """λ(s) = sigmoid(logits[s])."""

    logits: Float[Array, " S"]

    def __call__(self, observation: Int[Array, ""]) -> Float[Array, ""]:
        return jax.nn.sigmoid(self.logits[observation])


class LambdaNetwork(eqx.Module):
    """λ(s) = sigmoid(linear(perception(s))), with a perception module of its own (paper, KtD appendix)."""

    perception: PerceptionModule
    head: Dense

    def __call__(self, observation: PyTree) -> Float[Array, ""]:
        return jax.nn.sigmoid(self.head(self.perception(observation))[0])


class Contribution(NamedTuple):
    """The three numbers that synthetic returns learn about a state.

    c(s), what it adds to rewards that come `later`; the `gate` g(s) in (0, 1), how much of what earlier states added
    arrives here; b(s), what arrives `here` whatever came before.
    """

    later: Float[Array, "*batch"]
    gate: Float[Array, "*batch"]
    here: Float[Array, "*batch"]


class ContributionTable(eqx.Module):
    """One entry per state for each of the three numbers."""

    later: Float[Array, " S"]
    gate_logits: Float[Array, " S"]
    here: Float[Array, " S"]

    def __call__(self, observation: Int[Array, ""]) -> Contribution:
        gate = jax.nn.sigmoid(self.gate_logits[observation])
        return Contribution(self.later[observation], gate, self.here[observation])


class ContributionHead(eqx.Module):
    """dense – dense – one number, with ReLU between the layers."""

    first: Dense
    second: Dense
    last: Dense

    @classmethod
    def random(cls, key: Key[Array, ""], inputs: int, width: int) -> ContributionHead:
        """Fan-in normal weights, small ones in the last layer."""
        keys = jax.random.split(key, 3)
        return cls(
            Dense.random(keys[0], inputs, width),
            Dense.random(keys[1], width, width),
            Dense.random(keys[2], width, 1, CONTRIBUTION_SCALE),
        )

    def __call__(self, features: Float[Array, " D"]) -> Float[Array, ""]:
        return self.last(jax.nn.relu(self.second(jax.nn.relu(self.first(features)))))[0]


class ContributionNetwork(eqx.Module):
    """A perception module with three heads.

    The head of c sees the features as constants: they stand for the memories of an agent, which keep no gradient.
    """

    perception: PerceptionModule
    later: ContributionHead
    gate: ContributionHead
    here: ContributionHead

    def __call__(self, observation: PyTree) -> Contribution:
        features = self.perception(observation)
        later = self.later(jax.lax.stop_gradient(features))
        return Contribution(later, jax.nn.sigmoid(self.gate(features)), self.here(features))


def num_states(spec: EnvSpec) -> int:
    """The number of states of an environment that tables can represent."""
    if not isinstance(spec.observation, Discrete):
        raise PaircreditError(
            f"{spec.name} has observations of kind {type(spec.observation).__name__}, "
            "but tables need whole numbers (Discrete)."
        )
    return spec.observation.size


def refuse_sharing(network: NetworkSpec) -> None:
    """Refuse one perception module for policy and value, on behalf of methods that have no use for it."""
    if network.shared:
        raise PaircreditError(
            "network.shared is for A2C-RR, A2C and Meta-PWTD; the other methods keep policy and value networks apart."
        )


def policy_for(key: Key[Array, ""], spec: EnvSpec, network: NetworkSpec, scale: float) -> PolicyTable | PolicyNetwork:
    """A nearly uniform policy: normal logits of deviation `scale`, or a network whose last layer is so scaled."""
    refuse_sharing(network)
    if isinstance(spec.observation, Discrete):
        return PolicyTable(scale * jax.random.normal(key, (spec.observation.size, spec.num_actions), dtype=float))
    return PolicyNetwork(*_perception_and_head(key, spec.observation, network, spec.num_actions, scale))


def value_for(
    key: Key[Array, ""], spec: EnvSpec, network: NetworkSpec, scale: float | None = None
) -> ValueTable | ValueNetwork:
    """A value function at its start: a table of zeros, or of normal numbers with this deviation; or a network."""
    if isinstance(spec.observation, Discrete):
        shape = (spec.observation.size,)
        if scale is None:
            return ValueTable(jnp.zeros(shape, dtype=float))
        return ValueTable(scale * jax.random.normal(key, shape, dtype=float) + 0.0)  # else zeros would have signs
    return ValueNetwork(*_perception_and_head(key, spec.observation, network, 1))


def policy_and_value_for(
    key: Key[Array, ""],
    value_key: Key[Array, ""],
    spec: EnvSpec,
    network: NetworkSpec,
    scale: float,
    value_scale: float | None = None,
) -> tuple[PolicyTable | PolicyNetwork | SharedNetwork, ValueTable | ValueNetwork | None]:
    """A policy and a value function; where they share their perception module, one network and None."""
    if network.shared and not isinstance(spec.observation, Discrete):
        below = _perception_and_head(key, spec.observation, network, spec.num_actions, scale)
        return SharedNetwork(*below, Dense.random(jax.random.fold_in(key, 1), network.trunk[1], 1)), None
    apart = dataclasses.replace(network, shared=False)
    return policy_for(key, spec, apart, scale), value_for(value_key, spec, apart, value_scale)


def lambda_for(
    key: Key[Array, ""], spec: EnvSpec, network: NetworkSpec, start: float, scale: float
) -> LambdaTable | LambdaNetwork:
    """A λ(s) that is nearly `start` everywhere: a table, or a network where tables do not fit.

    The logits of a table start uniform in ± `scale`; the last layer of a network is so scaled.
    """
    middle = jnp.log(jnp.asarray(start, dtype=float)) - jnp.log1p(-jnp.asarray(start, dtype=float))
    if isinstance(spec.observation, Discrete):
        noise = jax.random.uniform(key, (spec.observation.size,), dtype=float, minval=-1, maxval=1)
        return LambdaTable(middle + scale * noise)
    perception, head = _perception_and_head(key, spec.observation, network, 1, scale)
    return LambdaNetwork(perception, Dense(head.weight, middle[None]))


def contribution_for(
    key: Key[Array, ""], spec: EnvSpec, network: NetworkSpec, width: int
) -> ContributionTable | ContributionNetwork:
    """Contributions of 0 or nearly so: tables, or networks with heads of this width where tables do not fit."""
    if isinstance(spec.observation, Discrete):
        return ContributionTable(*(jnp.zeros((spec.observation.size,), dtype=float) for _ in range(3)))
    keys = jax.random.split(key, 4)
    heads = (ContributionHead.random(one, network.trunk[1], width) for one in keys[1:])
    return ContributionNetwork(perception_of(keys[0], spec.observation, network), *heads)


def values_and_features(
    value: ValueFunction, observations: PyTree
) -> tuple[Float[Array, "B T_plus_1"], Float[Array, "B T_plus_1 D"] | None]:
    """Values of a batch of episodes, and the features below them (None for a table), both as constants."""

    def over_batch(function: Callable) -> Any:
        return jax.lax.stop_gradient(jax.vmap(jax.vmap(function))(observations))

    return over_batch(value), over_batch(value.features)


def _perception_and_head(
    key: Key[Array, ""], shown: Pixels | Vector, network: NetworkSpec, outputs: int, scale: float = 1.0
) -> tuple[PerceptionModule, Dense]:
    """A perception module and a linear layer on its features, whose initial weights are scaled."""
    below, top = jax.random.split(key)
    return perception_of(below, shown, network), Dense.random(top, network.trunk[1], outputs, scale)
