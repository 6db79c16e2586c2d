"""Metagradients: the problem, its objective, the gradient through all inner updates, and the paper's one-step rule.

The one-step rule goes through the last inner update only, θ_k taken as given. `explicit_one_step` spells out its chain
rule. With v = ∇J_outer(θ') and u = v pulled back through the optimiser step, the advantages receive the cotangent
c = ∂/∂Ψ ⟨∇_θ J_inner(θ, Ψ), u⟩: one Jacobian-vector product of the log-probabilities. From there ∇_η is an ordinary
gradient of Σ c·Ψ_η. For pairwise weights ∂J/∂w_tk = c_t · R_{k+1} (or δ_{k+1}): a matrix of rank one, which shows which
weights should grow. `autodiff_one_step` lets JAX derive all that by itself; both agree to rounding.

`check_metagradient` compares a metagradient with finite differences, which need no chain rule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from paircredit.errors import PaircreditError
from paircredit.metagradient.optimisers import Optimiser, apply_updates
from paircredit.types import PyTree


class MetaProblem(NamedTuple):
    """The functions of an inner loop that learns from η and of an outer loop that evaluates η.

    η enters through the advantages and nowhere else; sampled data are constants. That is the paper's setting, and it is
    what makes the metagradient first order: nothing here differentiates a rollout, a value function or an entropy.

    Attributes:
        advantages: (η, inner data, fixed) → the advantages of the inner batch. What is not differentiated on purpose
            (the statistics of a standardisation) is taken at the η called `fixed`, or at η itself where that is None.
        inner_loss: (policy, inner data, advantages) → the loss whose gradient moves the policy.
        optimiser: the inner optimiser.
        outer_loss: (policy, outer data) → the regular policy-gradient loss.
    """

    advantages: Callable[[PyTree, PyTree, PyTree | None], Array]
    inner_loss: Callable[[PyTree, PyTree, Array], Float[Array, ""]]
    optimiser: Optimiser
    outer_loss: Callable[[PyTree, PyTree], Float[Array, ""]]


class Tape(NamedTuple):
    """A record of one evaluation of the objective: its η, and the policy gradients of every inner update.

    Some quantities are held constant on purpose when the objective is differentiated (statistics of a standardisation,
    scales of an optimiser). An evaluation at another η that is given this record takes those quantities from it, so
    that finite differences vary exactly what the derivative varies.
    """

    eta: PyTree
    gradients: PyTree


def unrolled_objective(
    problem: MetaProblem,
    eta: PyTree,
    policy: PyTree,
    optimiser_state: PyTree,
    inner: PyTree,
    outer: PyTree,
    tape: Tape | None = None,
) -> tuple[Float[Array, ""], Tape]:
    """J(η) = Σ_i J_outer(θ_{i+1}) on outer batch i, where θ_{i+1} follows θ_i by one inner update.

    The data were collected beforehand (actions are constants), so this only replays the updates. All advantages are
    computed in one go, before the replay: the cotangent of the weights comes back as one batch, and a table of
    weights is scattered into once, not once per update.

    Args:
        problem: the functions of both loops.
        eta: meta-parameters.
        policy: θ_0.
        optimiser_state: state of the inner optimiser at θ_0.
        inner: data of the K inner updates, stacked along a leading axis.
        outer: data of the K outer losses, likewise; batch i was collected with θ_{i+1}.
        tape: the record of another evaluation, to take the constant quantities from.

    Returns:
        The objective and the tape of this evaluation.
    """
    fixed = None if tape is None else tape.eta
    advantages = jax.vmap(lambda data: problem.advantages(eta, data, fixed))(inner)

    def update(carry: tuple[PyTree, PyTree], step: tuple) -> tuple[tuple[PyTree, PyTree], tuple]:
        theta, state = carry
        inner_data, step_advantages, outer_data, detached = step
        gradients = jax.grad(problem.inner_loss)(theta, inner_data, step_advantages)
        updates, state = problem.optimiser.update(gradients, state, detached)
        theta = apply_updates(theta, updates)
        return (theta, state), (problem.outer_loss(theta, outer_data), gradients)

    detached = None if tape is None else tape.gradients
    _, (losses, gradients) = jax.lax.scan(update, (policy, optimiser_state), (inner, advantages, outer, detached))
    return jnp.sum(losses), Tape(eta, gradients)


def unrolled_metagradient(
    problem: MetaProblem, eta: PyTree, policy: PyTree, optimiser_state: PyTree, inner: PyTree, outer: PyTree
) -> tuple[PyTree, Float[Array, ""]]:
    """∇_η Σ_i J_outer(θ_{i+1}), every θ_{i+1} differentiated through all updates before it, and the outer loss.

    The gradient is to be descended; arguments as for `unrolled_objective`.
    """

    def objective(e: PyTree) -> Float[Array, ""]:
        return unrolled_objective(problem, e, policy, optimiser_state, inner, outer)[0]

    loss, gradient = jax.value_and_grad(objective)(eta)
    return gradient, loss


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

    `policy` is θ_k before the inner update, as is the optimiser's state; `outer` was collected with θ' = θ_{k+1}.
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


class GradientCheck(NamedTuple):
    """Slopes along random directions, from a gradient and from central differences.

    `relative_error` is |analytic − numeric| / |numeric|, the worst over the directions; the denominator is at least a
    thousandth of the largest slope.
    """

    relative_error: float
    analytic: np.ndarray
    numeric: np.ndarray


def check_metagradient(
    objective: Callable[..., Any],
    eta: PyTree,
    *,
    gradient: PyTree | None = None,
    has_tape: bool = False,
    key: Key[Array, ""] | None = None,
    directions: int = 8,
    step: float = 1e-4,
) -> GradientCheck:
    """Compare the metagradient of any objective with fourth-order central differences.

    Run it in float64 (`with jax.enable_x64(True):`), or rounding will drown the comparison. Where the objective holds
    quantities fixed on purpose (`differentiate="numerator"`, detached statistics), plain differences would move them;
    such an objective takes a second argument, returns `(value, tape)`, and is checked with `has_tape=True`: the tape of
    the unperturbed evaluation is handed to all others.

    Args:
        objective: η → scalar, or (η, tape) → (scalar, tape) with tape None at first.
        eta: the point at which to check.
        gradient: the gradient to check; None: JAX's own gradient of the objective.
        has_tape: whether the objective has the second form.
        key: draws the random directions.
        directions: the number of directions.
        step: the step of the differences along directions of length 1.
    """
    if not all(x.dtype == jnp.float64 for x in jax.tree.leaves(eta)):
        raise PaircreditError(
            "A finite-difference check needs float64: wrap it in `with jax.enable_x64(True):` "
            "and make the parameters inside."
        )
    fixed = objective(eta, None)[1] if has_tape else None
    value = jax.jit(lambda e: objective(e, fixed)[0] if has_tape else objective(e))
    if gradient is None:
        gradient = jax.grad(lambda e: objective(e, None)[0] if has_tape else objective(e))(eta)
    flat, unflatten = jax.flatten_util.ravel_pytree(eta)
    flat_gradient, _ = jax.flatten_util.ravel_pytree(gradient)
    analytic, numeric = [], []
    for direction_key in jax.random.split(jax.random.key(0) if key is None else key, directions):
        direction = jax.random.normal(direction_key, flat.shape, dtype=flat.dtype)
        direction = direction / jnp.linalg.norm(direction)
        near, far = (
            (value(unflatten(flat + h * direction)) - value(unflatten(flat - h * direction))) / (2 * h)
            for h in (step, 2 * step)
        )
        numeric.append(float((4 * near - far) / 3))
        analytic.append(float(flat_gradient @ direction))
    expected, given = np.array(numeric), np.array(analytic)
    scale = np.maximum(np.abs(expected), 1e-3 * np.abs(expected).max() + 1e-300)
    return GradientCheck(float(np.max(np.abs(given - expected) / scale)), given, expected)
