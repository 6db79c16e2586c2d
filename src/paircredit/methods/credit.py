"""What an action was credited with: the advantage, and the weights and signals it is the sum of."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from paircredit.types import Trajectory


class Credit(eqx.Module):
    """Ψ_t = Σ_k weights[t, k] · signal[k] − baseline_t, for a batch of episodes, before any standardisation.

    Attributes:
        advantages: Ψ.
        weights: of every pair; below the diagonal they mean nothing.
        signal: rewards or TD errors.
    """

    advantages: Float[Array, "B T"]
    weights: Float[Array, "B T T"]
    signal: Float[Array, "B T"]


def within_episodes(weights: Float[Array, "B T T"], trajectory: Trajectory) -> Float[Array, "B T T"]:
    """The weights, with 0 for pairs of steps of different episodes of a piece: these are no part of any sum."""
    number = trajectory.episode
    if number is None:
        return weights
    return jnp.where(number[:, :, None] == number[:, None, :], weights, 0.0)
