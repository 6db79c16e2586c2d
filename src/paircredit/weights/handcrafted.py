"""Weights that a person who knows the environment would write: 1 where a reward depends on the action, else 0."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import jax.numpy as jnp
import numpy as np

from paircredit.envs.dag import Dag, layers, num_states, reachable
from paircredit.envs.key_to_door import KeyToDoor
from paircredit.envs.protocol import Environment
from paircredit.envs.umbrella import Umbrella
from paircredit.errors import PaircreditError
from paircredit.weights.tables import FixedPairs, FixedTable, check_table_size


@singledispatch
def handcrafted_weights(env: Environment) -> Any:
    """The handcrafted weight function of an environment: a `FixedTable` over states, or `FixedPairs` of times.

    Teach it your own environment with `@handcrafted_weights.register`.
    """
    raise PaircreditError(
        f"Nobody has handcrafted pair weights for {env.spec.name}; "
        "register a function with paircredit.weights.handcrafted_weights.register, or give a table of weights."
    )


@handcrafted_weights.register
def handcrafted_dag_weights(env: Dag) -> FixedTable:
    """1 iff state j can follow state i and pays for the decision in i: layer(j) = depth + 2 − layer(i)."""
    check_table_size(num_states(env.depth))
    layer = layers(env.depth)
    pays = reachable(env.depth) & (layer[None, :] == env.depth + 2 - layer[:, None])
    return FixedTable(jnp.asarray(pays, dtype=float))


@handcrafted_weights.register
def handcrafted_umbrella_weights(env: Umbrella) -> FixedTable:
    """w_{0T} = 1, the evening's reward for the morning's decision, and 0 for every other pair."""
    count = 2 * env.horizon
    check_table_size(count)
    return FixedTable(jnp.zeros((count, count)).at[0, count - 1].set(1.0))


KEY_TO_DOOR_DISCOUNT = 0.92
"""The discount inside a phase of the handcrafted Key-to-Door weights (paper, Key-to-Door appendix)."""


@handcrafted_weights.register
def handcrafted_key_to_door_weights(env: KeyToDoor, discount: float = KEY_TO_DOOR_DISCOUNT) -> FixedPairs:
    """Credit for the key from the door, for apples from apples, for the door from the door, by the clock.

    An action of the apple or door phase gets what its own phase pays later, discounted by the delay. An action of the
    key phase gets what the door phase pays, discounted from the first step of that phase: however early the key was
    fetched, it opens the door as soon as the agent is there.
    """
    action, paid = np.indices((env.horizon, env.horizon))
    fetching, in_door_phase = action < env.key_steps, paid >= env.door_start
    same_phase = (action >= env.door_start) == in_door_phase
    delay = np.where(fetching, paid - env.door_start, paid - action)
    depends = np.where(fetching, in_door_phase, same_phase) & (delay >= 0)
    return FixedPairs(jnp.asarray(np.where(depends, discount ** np.maximum(delay, 0), 0.0), dtype=float))
