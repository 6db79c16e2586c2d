"""What an action was credited with: the advantage, and the weights and signals it is the sum of."""

from __future__ import annotations

import equinox as eqx
from jaxtyping import Array, Float


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
