"""Pair weights that depend on the two times alone, written down as one matrix."""

from __future__ import annotations

import equinox as eqx
from jaxtyping import Array, Float

from paircredit.types import PyTree


class FixedPairs(eqx.Module):
    """f = pairs[t, k] for the action at t and what arrives with the transition k → k+1, nothing to learn.

    For environments whose horizon is fixed and whose clock says what depends on what; all episodes have these weights.
    """

    pairs: Float[Array, "T T"]

    def __call__(self, inputs: PyTree) -> Float[Array, "T T"]:
        """The weights of all pairs of one trajectory, whatever was seen on it."""
        del inputs
        return self.pairs

    def matrix(self) -> Float[Array, "T T"]:
        """The weight of every pair of times."""
        return self.pairs
