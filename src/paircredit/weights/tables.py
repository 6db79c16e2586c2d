"""Pair weights that need no network: tables over states or times, and the weights of the classical estimators.

`PairWeights` is what every weight function is, those of networks included, and `PairInputs` what it may look at. Tables
over states look at the observations of a trajectory, which are numbers of states, and at nothing else. Handcrafted ones
are 1 where a reward depends on the action, else 0.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from paircredit.envs.dag import Dag, layers, num_states, reachable
from paircredit.envs.key_to_door import KeyToDoor
from paircredit.envs.protocol import Environment
from paircredit.envs.umbrella import Umbrella
from paircredit.errors import PaircreditError
from paircredit.estimators.returns import backward_recurrence
from paircredit.types import PyTree

LARGEST_TABLE = 2**29
"""Entries of the largest table that is built (2 GiB in float32)."""
KEY_TO_DOOR_DISCOUNT = 0.92
"""The discount inside a phase of the handcrafted Key-to-Door weights (paper, Key-to-Door appendix)."""


class PairInputs(eqx.Module):
    """One trajectory as a weight function sees it; tables look at the observations, networks at the rest.

    Attributes:
        observations: T+1 of them.
        features: the features that a value network computes of the observations, as constants.
        signal: the numbers that will be weighted (TD errors), for weight functions that look at them.
        valid: the steps that are no padding.
        episode: a number per step that tells episodes apart, where a trajectory may hold several.
    """

    observations: PyTree
    features: Float[Array, "*batch T_plus_1 D"] | None = None
    signal: Float[Array, "*batch T"] | None = None
    valid: Bool[Array, "*batch T"] | None = None
    episode: Int[Array, "*batch T"] | None = None


class PairWeights(Protocol):
    """A PyTree of parameters that maps one trajectory to a weight for every pair of steps."""

    def __call__(self, inputs: PairInputs) -> Float[Array, "T T"]:
        """`weights[t, k]` = f(S_t, S_{k+1}, k+1−t); entries below the diagonal mean nothing."""


@runtime_checkable
class MatrixWeights(Protocol):
    """Pair weights that are one matrix, over states or over times, whatever the trajectory."""

    def matrix(self) -> Float[Array, "N N"]:
        """The weight of every pair of states, or of times."""


class SigmoidTable(eqx.Module):
    """f = sigmoid(η[S_t, S_k]): the paper's tabular meta-parameters."""

    eta: Float[Array, "S S"]

    @classmethod
    def random(cls, key: Key[Array, ""], num_states: int, scale: float = 0.01) -> SigmoidTable:
        """η uniform in ±scale, so that every weight starts near ½ (paper, DAG appendix: ±0.01)."""
        check_table_size(num_states)
        return cls(jax.random.uniform(key, (num_states, num_states), dtype=float, minval=-scale, maxval=scale))

    def __call__(self, inputs: PairInputs) -> Float[Array, "T T"]:
        states: Int[Array, " T_plus_1"] = inputs.observations
        return jax.nn.sigmoid(self.eta[states[:-1, None], states[None, 1:]])

    def matrix(self) -> Float[Array, "S S"]:
        return jax.nn.sigmoid(self.eta)


class FixedTable(eqx.Module):
    """f = table[S_t, S_k], nothing to learn."""

    table: Float[Array, "S S"]

    def __call__(self, inputs: PairInputs) -> Float[Array, "T T"]:
        states: Int[Array, " T_plus_1"] = inputs.observations
        return self.table[states[:-1, None], states[None, 1:]]

    def matrix(self) -> Float[Array, "S S"]:
        return self.table


class FixedPairs(eqx.Module):
    """f = pairs[t, k] for the action at t and what arrives with the transition k → k+1, nothing to learn.

    For environments whose horizon is fixed and whose clock says what depends on what; all episodes have these weights.
    """

    pairs: Float[Array, "T T"]

    def __call__(self, inputs: PyTree) -> Float[Array, "T T"]:
        return self.pairs

    def matrix(self) -> Float[Array, "T T"]:
        return self.pairs


def check_table_size(num_states: int) -> None:
    if num_states**2 > LARGEST_TABLE:
        raise PaircreditError(
            f"A table of pair weights over {num_states} states has {num_states**2:,} entries; "
            f"at most {LARGEST_TABLE:,} are built. Choose a smaller environment."
        )


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


@handcrafted_weights.register
def handcrafted_key_to_door_weights(env: KeyToDoor, discount: float = KEY_TO_DOOR_DISCOUNT) -> FixedPairs:
    """Credit for the key from the door, for apples from apples, for the door from the door, by the clock.

    An action of the apple or door phase gets what its own phase pays later, discounted by the delay. An action of the
    key phase gets what the door phase pays, discounted from the first step of that phase, however early the key was
    fetched.
    """
    action, paid = np.indices((env.horizon, env.horizon))
    fetching, in_door_phase = action < env.key_steps, paid >= env.door_start
    same_phase = (action >= env.door_start) == in_door_phase
    delay = np.where(fetching, paid - env.door_start, paid - action)
    depends = np.where(fetching, in_door_phase, same_phase) & (delay >= 0)
    return FixedPairs(jnp.asarray(np.where(depends, discount ** np.maximum(delay, 0), 0.0), dtype=float))


def exponential_weights(
    length: int, discount: float | Float[Array, ""], lambda_: float | Float[Array, ""] = 1.0
) -> Float[Array, "T T"]:
    """`weights[t, k]` = (γλ)^(k−t) for k ≥ t and 0 below the diagonal.

    `pwtd` with these weights is the λ-estimator; `pwr` with them and λ = 1 is Monte Carlo. Differentiable in both
    arguments, at 0 too.
    """
    decay = jnp.asarray(discount, dtype=float) * jnp.asarray(lambda_, dtype=float)
    powers = jnp.cumprod(jnp.concatenate([jnp.ones((1,)), jnp.broadcast_to(decay, (max(length - 1, 0),))]))
    lag = jnp.arange(length)[None, :] - jnp.arange(length)[:, None]
    return jnp.where(lag >= 0, powers[jnp.maximum(lag, 0)], 0.0)


def trace_weights(decays: Float[Array, " T"]) -> Float[Array, "T T"]:
    """`weights[t, k]` = Π_{j=t..k−1} decays[j] for k ≥ t (1 on the diagonal) and 0 below.

    `pwtd` with these weights and decays γ_j λ_j is the λ-estimator with a λ per step.
    """
    columns = jnp.eye(decays.shape[0], dtype=decays.dtype)  # row t is e_t + decays[t] · (row t+1)
    return jax.vmap(backward_recurrence, in_axes=(1, None), out_axes=1)(columns, decays)
