"""Is the metagradient of a method right? Finite differences through real updates on a real environment."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Key

from paircredit.envs.protocol import Environment
from paircredit.errors import PaircreditError
from paircredit.metagradient import MetaProblem, check_metagradient, unrolled_objective
from paircredit.metagradient.optimisers import apply_updates
from paircredit.metagradient.problem import GradientCheck, Tape
from paircredit.methods.loops import Trained
from paircredit.methods.registry import method_name
from paircredit.training.loop import inner_updates
from paircredit.types import PyTree

SAME = 1e-7
"""How far numbers may be apart in float64, beside the largest of them, that are the same but for rounding."""


def check_method(
    method: Any, env: Environment, *, updates: int = 4, key: Key[Array, ""] | None = None, directions: int = 8
) -> GradientCheck:
    """Compare a method's metagradient, through several inner updates, with finite differences.

    The updates are replayed as `problem` says, as a function of η; before that the policies of the replay are compared
    with those that `learn` made. A metagradient of updates that are not the method's own would be worth nothing.

    Needs float64: call it inside `with jax.enable_x64(True):`, and make the environment there too.

    Args:
        method: a method with weights to learn.
        env: to collect episodes in.
        updates: inner updates to go through; 1 is the paper's one-step rule.
        key: of everything random.
        directions: the number of directions along which differences are taken.

    Returns:
        The check; `relative_error` should be around 1e-6 or less.
    """
    if not method.learns_weights:
        raise PaircreditError(f"{method_name(method)} has no weights to learn, so it has no metagradient to check.")
    init_key, batch_key, direction_key = jax.random.split(jax.random.key(0) if key is None else key, 3)
    learner = method.init(init_key, env)
    # One more update than is replayed: what it keeps is the policy after the last one that is.
    _, kept, evaluated, _ = jax.jit(lambda fresh, k: inner_updates(method, env, fresh, k, updates + 1))(
        learner, batch_key
    )
    problem, policy, weights = method.problem(), learner.policy, learner.weights.parameters
    inner, outer = jax.tree.map(lambda x: x[:-1], (kept, evaluated))
    replayed = jax.jit(lambda: replayed_policies(problem, weights, policy.parameters, policy.state, inner))()
    _refuse_another_policy(method, jax.tree.map(lambda x: x[1:], kept.policy), replayed)

    @jax.jit
    def objective(eta: PyTree, tape: Tape | None) -> tuple[Array, Tape]:
        return unrolled_objective(problem, eta, policy.parameters, policy.state, inner, outer, tape)

    return check_metagradient(objective, weights, has_tape=True, key=direction_key, directions=directions)


def replayed_policies(problem: MetaProblem, eta: PyTree, policy: PyTree, state: PyTree, inner: PyTree) -> Trained:
    """The policies θ_1 … θ_K that K inner updates lead to if they are made as the problem says, with their states."""

    def update(before: tuple[PyTree, PyTree], data: PyTree) -> tuple[tuple[PyTree, PyTree], Trained]:
        theta, state = before
        gradients = jax.grad(problem.inner_loss)(theta, data, problem.advantages(eta, data, None))
        updates, state = problem.optimiser.update(gradients, state)
        theta = apply_updates(theta, updates)
        return (theta, state), Trained(theta, state)

    return jax.lax.scan(update, (policy, state), inner)[1]


def _refuse_another_policy(method: Any, learned: Trained, replayed: Trained) -> None:
    """Compare policies and the states of their optimisers, stacked over updates, up to rounding.

    An optimiser that divides by the size of its gradient moves a policy along 2Ψ as along Ψ; its state shows the
    difference.
    """
    for made, said in zip(jax.tree.leaves(learned), jax.tree.leaves(replayed), strict=True):
        made, said = (np.asarray(x, dtype=np.float64).reshape(len(x), -1) for x in (made, said))
        apart, size = np.abs(made - said).max(axis=1), np.abs(said).max(axis=1)
        wrong = np.flatnonzero(~(apart <= SAME * size))
        if wrong.size:
            first = wrong[0]
            raise PaircreditError(
                f"{method_name(method)} learns otherwise than its problem says: after inner update {first + 1} the "
                f"policy, or what its optimiser remembers, is off by {apart[first]:.1e} beside {size[first]:.1e}. "
                "`learn` must take its step with the advantages, the loss and the optimiser of `problem()`; "
                "`ActorCritic` does so for any credit rule."
            )
