"""Is the metagradient of a method right? Finite differences through real updates on a real environment."""

from __future__ import annotations

from typing import Any

import jax
from jaxtyping import Array, Key

from paircredit.envs.protocol import Environment
from paircredit.errors import PaircreditError
from paircredit.metagradient import GradientCheck, check_metagradient, unrolled_objective
from paircredit.metagradient.problem import Tape
from paircredit.methods.registry import method_name
from paircredit.training.loop import inner_updates, learns_weights
from paircredit.types import PyTree


def check_method(
    method: Any, env: Environment, *, updates: int = 4, key: Key[Array, ""] | None = None, directions: int = 8
) -> GradientCheck:
    """Compare a method's metagradient, through several inner updates, with finite differences.

    Needs float64: call it inside `with jax.enable_x64(True):`, and make the environment there too.

    Args:
        method: a method with weights to learn.
        env: to collect episodes in.
        updates: inner updates to go through; 1 is the paper's one-step rule.
        key: of everything random.
        directions: along which the differences are taken.

    Returns:
        The check; `relative_error` should be around 1e-6 or less.
    """
    if not learns_weights(method):
        raise PaircreditError(f"{method_name(method)} has no weights to learn, so it has no metagradient to check.")
    init_key, batch_key, direction_key = jax.random.split(jax.random.key(0) if key is None else key, 3)
    learner = method.init(init_key, env)
    _, inner, outer, _ = jax.jit(lambda fresh, k: inner_updates(method, env, fresh, k, updates))(learner, batch_key)
    problem, policy = method.problem(), learner.policy

    @jax.jit
    def objective(eta: PyTree, tape: Tape | None) -> tuple[Array, Tape]:
        return unrolled_objective(problem, eta, policy.parameters, policy.state, inner, outer, tape)

    return check_metagradient(
        objective, learner.weights.parameters, has_tape=True, key=direction_key, directions=directions
    )
