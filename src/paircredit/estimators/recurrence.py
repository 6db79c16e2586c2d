"""The first-order linear recurrence behind returns and λ-advantages."""

from __future__ import annotations

import jax
from jaxtyping import Array, Float


def backward_recurrence(inputs: Float[Array, " T"], decays: Float[Array, " T"]) -> Float[Array, " T"]:
    """x_t = inputs_t + decays_t · x_{t+1}, with x_T = 0, for all t at once.

    An associative scan: log2(T) vector operations in place of a loop of T steps, which is what small tables on a
    CPU and long episodes on a GPU both want.
    """

    def compose(later: tuple[Array, Array], earlier: tuple[Array, Array]) -> tuple[Array, Array]:
        decay_later, sum_later = later
        decay_earlier, sum_earlier = earlier
        return decay_later * decay_earlier, sum_earlier + decay_earlier * sum_later

    _, result = jax.lax.associative_scan(compose, (decays, inputs), reverse=True)
    return result
