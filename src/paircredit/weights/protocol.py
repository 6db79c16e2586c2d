"""What a weight function is."""

from __future__ import annotations

from typing import Protocol

from jaxtyping import Array, Float

from paircredit.types import PyTree


class PairWeights(Protocol):
    """A PyTree of parameters that maps the observations of one trajectory to a weight for every pair of steps."""

    def __call__(self, observations: PyTree) -> Float[Array, "T T"]:
        """`weights[t, k]` = f(S_t, S_{k+1}, k+1−t) from T+1 observations; entries below the diagonal mean nothing."""
        ...
