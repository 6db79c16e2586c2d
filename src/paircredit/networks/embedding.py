"""Numbered states as vectors, for methods that need more than a table: attention, memory, recurrent cells."""

from __future__ import annotations

import equinox as eqx
import jax
from jaxtyping import Array, Float, Int, Key

from paircredit.networks.layers import Dense, fan_in_normal
from paircredit.networks.spec import NetworkSpec


class StateEmbedding(eqx.Module):
    """A row per state, one dense layer behind it: what a perception module is for pictures."""

    table: Float[Array, "S D"]
    last: Dense

    @classmethod
    def random(cls, key: Key[Array, ""], num_states: int, spec: NetworkSpec) -> StateEmbedding:
        """Rows of deviation 1; a dense layer with fan-in normal weights."""
        below, top = jax.random.split(key)
        width = spec.trunk[1]
        return cls(fan_in_normal(below, (num_states, width), 1), Dense.random(top, width, width))

    def __call__(self, observation: Int[Array, ""]) -> Float[Array, " D"]:
        """The features of one state."""
        return jax.nn.relu(self.last(self.table[observation]))

    def of_change(self, observation: Int[Array, ""], before: Int[Array, ""]) -> Float[Array, " D"]:
        """The features of a change of state: those of the difference of two one-hot vectors."""
        return jax.nn.relu(self.last(self.table[observation] - self.table[before]))
