"""Optimisers whose steps can be differentiated, with a named switch for what is.

They follow optax's `init` / `update` pair and compute what optax computes. They differ in the derivative:

- optax's Adam has a NaN derivative wherever a gradient entry is exactly 0 (every unvisited row of a table, every dead
  ReLU), because it differentiates a square root at 0. Here the root is safe.
- `differentiate="everything"` treats the step as the function it is. `differentiate="numerator"` holds what merely
  scales the step (second moment, clipping factor) fixed, so that the derivative is that of a preconditioned SGD step.
  The difference is not small: with b1 = 0 the first Adam step is a sign step, whose full derivative is almost 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from paircredit.errors import PaircreditError
from paircredit.types import PyTree

Differentiate = Literal["everything", "numerator"]
Scalar = float | Float[Array, ""]


class _Update(Protocol):
    def __call__(self, gradients: PyTree, state: PyTree, detached: PyTree | None = None) -> tuple[PyTree, PyTree]: ...


class Optimiser(NamedTuple):
    """A differentiable optimiser.

    Attributes:
        init: parameters → state.
        update: (gradients, state, detached) → (updates, state). `detached` are the gradients from which everything is
            taken that is not differentiated; left out, they are the gradients themselves, held constant. A
            finite-difference check passes them to hold the same things fixed that the derivative holds fixed.
    """

    init: Callable[[PyTree], PyTree]
    update: _Update


class SecondMoment(NamedTuple):
    """Running averages of the gradient (where b1 > 0, else empty) and of its square, and the number of steps."""

    first: PyTree
    second: PyTree
    steps: Int[Array, ""]


def apply_updates(parameters: PyTree, updates: PyTree) -> PyTree:
    """The parameters plus their updates."""
    return jax.tree.map(lambda p, u: p + u, parameters, updates)


def safe_sqrt(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """√x with derivative 0 at 0, where the true one is infinite."""
    positive = x > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, x, 1.0)), 0.0)


def global_norm(tree: PyTree) -> Float[Array, ""]:
    """The Euclidean norm of all entries; its derivative at 0 is 0."""
    return safe_sqrt(sum((jnp.sum(jnp.square(x)) for x in jax.tree.leaves(tree)), start=jnp.zeros(())))


def clip_by_global_norm(tree: PyTree, limit: Scalar | None, norm_of: PyTree | None = None) -> PyTree:
    """Scale gradients down so that their global norm, or that of `norm_of`, is at most `limit` (None: leave them)."""
    if limit is None:
        return tree
    norm = global_norm(tree if norm_of is None else norm_of)
    factor = jnp.where(norm > limit, limit / jnp.where(norm > 0, norm, 1.0), 1.0)
    return jax.tree.map(lambda x: x * factor, tree)


def sgd(
    learning_rate: Scalar, *, clip_norm: Scalar | None = None, differentiate: Differentiate = "everything"
) -> Optimiser:
    """Plain gradient descent, optionally clipped."""

    def update(gradients: PyTree, state: PyTree, detached: PyTree | None = None) -> tuple[PyTree, PyTree]:
        gradients, _ = _clip(gradients, detached, clip_norm, differentiate)
        return jax.tree.map(lambda g: -learning_rate * g, gradients), state

    return Optimiser(lambda parameters: (), update)


def adam(
    learning_rate: Scalar,
    *,
    b1: float = 0.0,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-8,
    eps_root: Scalar = 0.0,
    clip_norm: Scalar | None = None,
    differentiate: Differentiate = "everything",
) -> Optimiser:
    """Adam; the paper's choice everywhere but on Atari, always with b1 = 0.

    Args:
        learning_rate: step size.
        b1: decay of the first moment, a plain number; 0 leaves the first moment out altogether.
        b2: decay of the second moment.
        eps: added outside the root.
        eps_root: added inside the root; bounds the derivative of the step at gradients near 0.
        clip_norm: clip the gradients to this global norm first.
        differentiate: the parts of the step that the derivative sees.
    """

    def init(parameters: PyTree) -> SecondMoment:
        zeros = jax.tree.map(jnp.zeros_like, parameters)
        return SecondMoment(zeros if b1 else (), zeros, jnp.zeros((), dtype=jnp.int32))

    def update(gradients: PyTree, state: SecondMoment, detached: PyTree | None = None) -> tuple[PyTree, SecondMoment]:
        gradients, scale_source = _clip(gradients, detached, clip_norm, differentiate)
        steps = state.steps + 1
        second = jax.tree.map(lambda v, g: b2 * v + (1 - b2) * jnp.square(g), state.second, scale_source)
        first, numerator = (), gradients
        if b1:
            first = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, state.first, gradients)
            numerator = jax.tree.map(lambda m: m / (1 - b1 ** steps.astype(m.dtype)), first)

        def step(g: Array, v: Array) -> Array:
            corrected = v / (1 - jnp.asarray(b2, dtype=v.dtype) ** steps.astype(v.dtype))
            return -learning_rate * g / (safe_sqrt(corrected + eps_root) + eps)

        return jax.tree.map(step, numerator, second), SecondMoment(first, second, steps)

    return Optimiser(init, update)


def rmsprop(
    learning_rate: Scalar,
    *,
    decay: Scalar = 0.99,
    eps: Scalar = 1e-5,
    eps_in_root: bool = True,
    clip_norm: Scalar | None = None,
    differentiate: Differentiate = "everything",
) -> Optimiser:
    """RMSProp; the paper's choice on Atari. Arguments that `adam` has, too, mean the same.

    Args:
        learning_rate: step size.
        decay: decay of the second moment.
        eps: added inside the root, as TensorFlow does, or outside it, as PyTorch does.
        eps_in_root: whether it is added inside the root.
        clip_norm: as in `adam`.
        differentiate: as in `adam`.
    """

    def init(parameters: PyTree) -> PyTree:
        return jax.tree.map(jnp.zeros_like, parameters)

    def update(gradients: PyTree, state: PyTree, detached: PyTree | None = None) -> tuple[PyTree, PyTree]:
        gradients, scale_source = _clip(gradients, detached, clip_norm, differentiate)
        second = jax.tree.map(lambda v, g: decay * v + (1 - decay) * jnp.square(g), state, scale_source)

        def step(g: Array, v: Array) -> Array:
            root = safe_sqrt(v + eps) if eps_in_root else safe_sqrt(v) + eps
            return -learning_rate * g / root

        return jax.tree.map(step, gradients, second), second

    return Optimiser(init, update)


def _clip(
    gradients: PyTree, detached: PyTree | None, limit: Scalar | None, differentiate: Differentiate
) -> tuple[PyTree, PyTree]:
    """The clipped gradients, and the clipped gradients that scales are computed from."""
    if differentiate == "everything":
        clipped = clip_by_global_norm(gradients, limit)
        return clipped, clipped
    if differentiate != "numerator":
        raise PaircreditError(f"differentiate is {differentiate!r}, but must be 'everything' or 'numerator'.")
    source = jax.lax.stop_gradient(gradients if detached is None else detached)
    return clip_by_global_norm(gradients, limit, norm_of=source), clip_by_global_norm(source, limit)
