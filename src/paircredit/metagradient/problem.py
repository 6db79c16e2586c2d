"""What a metagradient is made of: the problem, its objective, and the gradient through all inner updates."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

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
    """∇_η Σ_i J_outer(θ_{i+1}), every θ_{i+1} differentiated through all updates before it.

    Args:
        problem: the functions of both loops.
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
