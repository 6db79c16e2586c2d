"""A metagradient against finite differences, which need no chain rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from paircredit.errors import PaircreditError
from paircredit.types import PyTree


class GradientCheck(NamedTuple):
    """A gradient compared with finite differences along random directions.

    Attributes:
        relative_error: |analytic − numeric| / |numeric|, the worst over the directions; the denominator is at
            least a thousandth of the largest slope.
        analytic: directional derivatives from the gradient.
        numeric: directional derivatives from central differences.
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
