"""The metagradient through all inner updates since the last reset."""

from __future__ import annotations

import jax
from jaxtyping import Array, Float

from paircredit.metagradient.problem import MetaProblem, unrolled_objective
from paircredit.types import PyTree


def unrolled_metagradient(
    problem: MetaProblem, eta: PyTree, policy: PyTree, optimiser_state: PyTree, inner: PyTree, outer: PyTree
) -> tuple[PyTree, Float[Array, ""]]:
    """∇_η Σ_i J_outer(θ_{i+1}), every θ_{i+1} differentiated through all updates before it.

    Args:
        problem: the pieces.
        eta: meta-parameters.
        policy: θ_0.
        optimiser_state: state of the inner optimiser at θ_0.
        inner: data of the K inner updates, stacked along a leading axis.
        outer: data of the K outer losses, likewise.

    Returns:
        The gradient (to descend) and the outer loss.
    """

    def objective(e: PyTree) -> Float[Array, ""]:
        return unrolled_objective(problem, e, policy, optimiser_state, inner, outer)[0]

    loss, gradient = jax.value_and_grad(objective)(eta)
    return gradient, loss
