"""Tables: the representation that cannot generalise and therefore cannot confuse."""

from __future__ import annotations

import equinox as eqx
import jax
from jaxtyping import Array, Float, Int, Key


class PolicyTable(eqx.Module):
    """One row of logits per state."""

    logits: Float[Array, "S A"]

    def __call__(self, observation: Int[Array, ""]) -> Float[Array, " A"]:
        """The logits of one state."""
        return self.logits[observation]

    @classmethod
    def random(cls, key: Key[Array, ""], num_states: int, num_actions: int, scale: float) -> PolicyTable:
        """Normal logits around 0 with deviation `scale`: a nearly uniform policy."""
        return cls(scale * jax.random.normal(key, (num_states, num_actions), dtype=float))


class ValueTable(eqx.Module):
    """One value per state."""

    values: Float[Array, " S"]

    def __call__(self, observation: Int[Array, ""]) -> Float[Array, ""]:
        """The value of one state."""
        return self.values[observation]
