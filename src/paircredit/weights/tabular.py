"""Pair weights as |S| × |S| tables, learned or fixed.

They look at the observations of a trajectory, which are numbers of states, and at nothing else.
"""

from __future__ import annotations

import equinox as eqx
import jax
from jaxtyping import Array, Float, Int, Key

from paircredit.errors import PaircreditError
from paircredit.weights.protocol import PairInputs

LARGEST_TABLE = 2**29
"""Entries of the largest table that is built (2 GiB in float32)."""


class SigmoidTable(eqx.Module):
    """f = sigmoid(η[S_t, S_k]): the paper's tabular meta-parameters."""

    eta: Float[Array, "S S"]

    def __call__(self, inputs: PairInputs) -> Float[Array, "T T"]:
        """The weights of all pairs of one trajectory."""
        states: Int[Array, " T_plus_1"] = inputs.observations
        return jax.nn.sigmoid(self.eta[states[:-1, None], states[None, 1:]])

    def matrix(self) -> Float[Array, "S S"]:
        """The weight of every pair of states."""
        return jax.nn.sigmoid(self.eta)

    @classmethod
    def random(cls, key: Key[Array, ""], num_states: int, scale: float = 0.01) -> SigmoidTable:
        """η uniform in ±scale, so that every weight starts near ½ (paper, DAG appendix: ±0.01)."""
        check_table_size(num_states)
        return cls(jax.random.uniform(key, (num_states, num_states), dtype=float, minval=-scale, maxval=scale))


class FixedTable(eqx.Module):
    """f = table[S_t, S_k], nothing to learn."""

    table: Float[Array, "S S"]

    def __call__(self, inputs: PairInputs) -> Float[Array, "T T"]:
        """The weights of all pairs of one trajectory."""
        states: Int[Array, " T_plus_1"] = inputs.observations
        return self.table[states[:-1, None], states[None, 1:]]

    def matrix(self) -> Float[Array, "S S"]:
        """The weight of every pair of states."""
        return self.table


def check_table_size(num_states: int) -> None:
    """Refuse a pair table that would not fit into memory."""
    if num_states**2 > LARGEST_TABLE:
        raise PaircreditError(
            f"A table of pair weights over {num_states} states has {num_states**2:,} entries; "
            f"at most {LARGEST_TABLE:,} are built. Choose a smaller environment."
        )
