"""What a weight function is, and what it may look at."""

from __future__ import annotations

from typing import Protocol

import equinox as eqx
from jaxtyping import Array, Bool, Float, Int

from paircredit.types import PyTree


class PairInputs(eqx.Module):
    """One trajectory as a weight function sees it; tables look at the observations, networks at the rest.

    Attributes:
        observations: T+1 of them.
        features: vectors that a value network sees in the observations, as constants.
        signal: what is going to be weighted (TD errors), for weight functions that look at it.
        valid: the steps that are no padding.
        episode: where there may be several episodes, a number per step that tells them apart.
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
        ...
