"""Choosing a representation from what an environment shows."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Key

from paircredit.envs.protocol import Discrete, EnvSpec
from paircredit.errors import PaircreditError
from paircredit.networks.tabular import PolicyTable, ValueTable


def num_states(spec: EnvSpec) -> int:
    """The number of states of an environment that tables can represent."""
    if not isinstance(spec.observation, Discrete):
        raise PaircreditError(
            f"{spec.name} has observations of kind {type(spec.observation).__name__}, "
            "but tables need whole numbers (Discrete)."
        )
    return spec.observation.size


def policy_for(key: Key[Array, ""], spec: EnvSpec, scale: float) -> PolicyTable:
    """A policy close to uniform."""
    return PolicyTable.random(key, num_states(spec), spec.num_actions, scale)


def value_for(spec: EnvSpec) -> ValueTable:
    """A value function that is 0 everywhere."""
    return ValueTable(jnp.zeros((num_states(spec),), dtype=float))
