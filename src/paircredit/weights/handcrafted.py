"""Weights a person would write who knows the environment: 1 where a reward depends on the action, else 0."""

from __future__ import annotations

from functools import singledispatch

import jax.numpy as jnp

from paircredit.envs.dag import Dag, layers, num_states, reachable
from paircredit.envs.protocol import Environment
from paircredit.envs.umbrella import Umbrella
from paircredit.errors import PaircreditError
from paircredit.weights.tabular import FixedTable, check_table_size


@singledispatch
def handcrafted_weights(env: Environment) -> FixedTable:
    """The handcrafted weight function of an environment.

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
