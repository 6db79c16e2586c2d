"""Choosing a representation from what an environment shows: tables for numbered states, networks for the rest."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from paircredit.envs.protocol import Discrete, EnvSpec
from paircredit.errors import PaircreditError
from paircredit.networks.actor_critic import PolicyNetwork, SharedNetwork, ValueNetwork
from paircredit.networks.senses import perception_of
from paircredit.networks.spec import NetworkSpec
from paircredit.networks.tabular import PolicyTable, ValueTable
from paircredit.types import PyTree


def num_states(spec: EnvSpec) -> int:
    """The number of states of an environment that tables can represent."""
    if not isinstance(spec.observation, Discrete):
        raise PaircreditError(
            f"{spec.name} has observations of kind {type(spec.observation).__name__}, "
            "but tables need whole numbers (Discrete)."
        )
    return spec.observation.size


def perception_for(key: Key[Array, ""], spec: EnvSpec, network: NetworkSpec) -> Any:
    """From one observation to a vector of `network.trunk[1]` features, for whatever an environment shows."""
    return perception_of(key, spec.observation, network)


def refuse_sharing(network: NetworkSpec) -> None:
    """Refuse one perception module for policy and value, on behalf of methods that have no use for it."""
    if network.shared:
        raise PaircreditError(
            "network.shared is for A2C-RR, A2C and Meta-PWTD; the other methods keep policy and value networks apart."
        )


def policy_for(key: Key[Array, ""], spec: EnvSpec, network: NetworkSpec, scale: float) -> Any:
    """A policy close to uniform: a table of logits of deviation `scale`, or a network whose last layer is so scaled."""
    refuse_sharing(network)
    if not isinstance(spec.observation, Discrete):
        return PolicyNetwork.random(key, spec.observation, network, spec.num_actions, scale)
    return PolicyTable.random(key, num_states(spec), spec.num_actions, scale)


def policy_and_value_for(
    key: Key[Array, ""], value_key: Key[Array, ""], spec: EnvSpec, network: NetworkSpec, scale: float
) -> tuple[Any, Any]:
    """A policy and a value function; where they share their perception, one network and None."""
    if network.shared and not isinstance(spec.observation, Discrete):
        return SharedNetwork.random(key, spec.observation, network, spec.num_actions, scale), None
    apart = dataclasses.replace(network, shared=False)
    return policy_for(key, spec, apart, scale), value_for(value_key, spec, apart)


def value_for(key: Key[Array, ""], spec: EnvSpec, network: NetworkSpec) -> Any:
    """A value function: a table of zeros, or a network at its start."""
    if not isinstance(spec.observation, Discrete):
        return ValueNetwork.random(key, spec.observation, network)
    return ValueTable(jnp.zeros((num_states(spec),), dtype=float))


def values_and_features(
    value: Any, observations: PyTree
) -> tuple[Float[Array, "B T_plus_1"], Float[Array, "B T_plus_1 D"] | None]:
    """Values of a batch of episodes, and what the last layer saw (None for a table), with no gradient."""

    def over_batch(function: Callable) -> Array:
        return jax.lax.stop_gradient(jax.vmap(jax.vmap(function))(observations))

    return over_batch(value), over_batch(value.features) if hasattr(value, "features") else None
