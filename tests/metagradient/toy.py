"""A small generic meta-problem: every segment is smooth, nothing is linear that need not be, nothing is 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from paircredit.metagradient import MetaProblem, Optimiser, adam, apply_updates, rmsprop, sgd

OPTIMISERS: dict[str, Callable[..., Optimiser]] = {
    "sgd": lambda **kw: sgd(0.5, **kw),
    "sgd, numerator": lambda **kw: sgd(0.5, differentiate="numerator", **kw),
    "adam": lambda **kw: adam(0.1, **kw),
    "adam, numerator": lambda **kw: adam(0.1, differentiate="numerator", **kw),
    "adam, b1": lambda **kw: adam(0.1, b1=0.9, **kw),
    "adam, b1, numerator": lambda **kw: adam(0.1, b1=0.9, differentiate="numerator", **kw),
    "adam, eps_root": lambda **kw: adam(0.1, eps_root=1e-4, **kw),
    "rmsprop, inside": lambda **kw: rmsprop(0.1, **kw),
    "rmsprop, outside": lambda **kw: rmsprop(0.1, eps_in_root=False, **kw),
    "rmsprop, numerator": lambda **kw: rmsprop(0.1, differentiate="numerator", **kw),
}
BITING_CLIP = 0.01
"""Smaller than any gradient norm met here."""


class Toy(NamedTuple):
    problem: MetaProblem
    eta: Any
    policy: Any
    state: Any
    inner: Any
    outer: Any


def meta_problem(optimiser: Optimiser) -> MetaProblem:
    """η shapes the advantages of the samples of a batch; two leaves are the policy."""

    def log_probability(policy: Any, data: Any) -> jax.Array:
        logits = jnp.tanh(data["features"] @ policy["hidden"]) @ policy["head"]
        return jnp.sum(jax.nn.log_softmax(logits) * data["taken"], axis=-1)

    def advantages(eta: Any, data: Any, detached: jax.Array | None) -> jax.Array:
        return jnp.sin(data["about"] @ eta["a"]) + jnp.square(data["about"] @ eta["b"])

    def inner_loss(policy: Any, data: Any, psi: jax.Array) -> jax.Array:
        return -jnp.mean(psi * log_probability(policy, data)) + 0.1 * jnp.mean(jnp.square(policy["head"]))

    def outer_loss(policy: Any, data: Any) -> jax.Array:
        return -jnp.mean(data["evaluation"] * log_probability(policy, data))

    return MetaProblem(advantages, inner_loss, optimiser, outer_loss)


def toy(optimiser: Optimiser, updates: int = 4) -> Toy:
    """The problem with parameters, data of some inner updates, and an optimiser that has been used before."""
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> jax.Array:
        return jnp.asarray(rng.normal(size=shape))

    def batches() -> Any:
        return {
            "features": normal(updates, 6, 4),
            "about": normal(updates, 6, 3),
            "taken": jnp.asarray(np.eye(3)[np.arange(updates * 6).reshape(updates, 6) % 3]),
            "evaluation": normal(updates, 6),
        }

    eta = {"a": normal(3), "b": normal(3)}
    policy = {"hidden": normal(4, 3), "head": normal(3, 3)}
    state = optimiser.init(policy)
    for _ in range(3):
        gradients = jax.tree.map(lambda x: 0.1 * normal(*x.shape), policy)
        steps, state = optimiser.update(gradients, state)
        policy = apply_updates(policy, steps)
    return Toy(meta_problem(optimiser), eta, policy, state, batches(), batches())


def first_batch(case: Toy) -> Toy:
    """The one-step problem: without the axis of updates."""
    inner, outer = jax.tree.map(lambda x: x[0], (case.inner, case.outer))
    return case._replace(inner=inner, outer=outer)
