"""What a λ-estimator weighs TD errors with, as pair weights."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from paircredit.estimators.recurrence import backward_recurrence


def trace_weights(decays: Float[Array, " T"]) -> Float[Array, "T T"]:
    """`weights[t, k]` = Π_{j=t..k−1} decays[j] for k ≥ t (1 on the diagonal) and 0 below.

    `pwtd` with these weights and decays γ_j λ_j is the λ-estimator with a λ per step. The exponential weights are the
    special case of a constant.
    """
    columns = jnp.eye(decays.shape[0], dtype=decays.dtype)  # row t is e_t + decays[t] · (row t+1)
    return jax.vmap(backward_recurrence, in_axes=(1, None), out_axes=1)(columns, decays)
