"""The paper's metagradient: through the last inner update only, θ_k taken as given.

`explicit_one_step` spells out the chain rule. With v = ∇J_outer(θ') and u = v pulled back through the optimiser step,
the advantages receive the cotangent c = ∂/∂Ψ ⟨∇_θ J_inner(θ, Ψ), u⟩: one Jacobian-vector product of the
log-probabilities. From there ∇_η is an ordinary gradient of Σ c·Ψ_η. For pairwise weights ∂J/∂w_tk = c_t · R_{k+1}
(or δ_{k+1}): a matrix of rank one, which shows which weights should grow. `autodiff_one_step` lets JAX derive all that
by itself; both agree to rounding.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from paircredit.metagradient.optimisers import apply_updates
from paircredit.metagradient.problem import MetaProblem, unrolled_objective
from paircredit.types import PyTree


class OneStep(NamedTuple):
    """A one-step metagradient, with the outer loss and the credit that it passed through.

    Attributes:
        gradient: ∇_η of the outer loss (to descend).
        loss: the outer loss of θ'.
        credit: ∂loss/∂Ψ for every advantage of the inner batch: negative where more advantage would have helped.
    """

    gradient: PyTree
    loss: Float[Array, ""]
    credit: Array


def explicit_one_step(
    problem: MetaProblem, eta: PyTree, policy: PyTree, optimiser_state: PyTree, inner: PyTree, outer: PyTree
) -> OneStep:
    """∇_η J_outer(θ'), by hand: two vector-Jacobian products and one Jacobian-vector product.

    Args:
        problem: the functions of both loops.
        eta: meta-parameters.
        policy: θ_k, before the inner update.
        optimiser_state: state of the inner optimiser before it.
        inner: data of the inner update.
        outer: data of the outer loss, collected with θ' = θ_{k+1}.
    """
    advantages, to_eta = jax.vjp(lambda e: problem.advantages(e, inner, None), eta)
    gradients = jax.grad(problem.inner_loss)(policy, inner, advantages)
    updates, to_gradients = jax.vjp(lambda g: problem.optimiser.update(g, optimiser_state)[0], gradients)
    loss, pull = jax.value_and_grad(problem.outer_loss)(apply_updates(policy, updates), outer)
    (direction,) = to_gradients(pull)

    def change_of_inner_loss(psi: Array) -> Float[Array, ""]:
        return jax.jvp(lambda theta: problem.inner_loss(theta, inner, psi), (policy,), (direction,))[1]

    credit = jax.grad(change_of_inner_loss)(advantages)
    (gradient,) = to_eta(credit)
    return OneStep(gradient, loss, credit)


def autodiff_one_step(
    problem: MetaProblem, eta: PyTree, policy: PyTree, optimiser_state: PyTree, inner: PyTree, outer: PyTree
) -> OneStep:
    """The same by automatic differentiation through the inner update: `unrolled_objective` with K = 1."""
    single_inner, single_outer = jax.tree.map(lambda x: x[None], (inner, outer))

    def objective(e: PyTree, nudge: Array) -> Float[Array, ""]:
        nudged = problem._replace(advantages=lambda e, data, fixed: problem.advantages(e, data, fixed) + nudge)
        return unrolled_objective(nudged, e, policy, optimiser_state, single_inner, single_outer)[0]

    shape = jax.eval_shape(lambda: problem.advantages(eta, inner, None))
    loss, (gradient, credit) = jax.value_and_grad(objective, argnums=(0, 1))(eta, jnp.zeros(shape.shape, shape.dtype))
    return OneStep(gradient, loss, credit)
