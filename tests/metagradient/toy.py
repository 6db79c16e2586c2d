"""A small generic meta-problem: every piece is smooth, nothing is linear that need not be, nothing is 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from paircredit.estimators import standardise
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


def toy(optimiser: Optimiser, updates: int = 4) -> Toy:
    """η shapes standardised advantages of 6 samples; two leaves are the policy; the optimiser has been used before."""
    keys = iter(jax.random.split(jax.random.key(0), 20))

    def normal(*shape: int) -> jax.Array:
        return jax.random.normal(next(keys), shape, dtype=float)

    def log_probability(policy: Any, data: Any) -> jax.Array:
        logits = jnp.tanh(data["features"] @ policy["hidden"]) @ policy["head"]
        return jnp.sum(jax.nn.log_softmax(logits) * data["taken"], axis=-1)

    def advantages(eta: Any, data: Any, detached: jax.Array | None) -> jax.Array:
        raw = jnp.sin(data["about"] @ eta["a"]) + jnp.square(data["about"] @ eta["b"])
        return raw

    def inner_loss(policy: Any, data: Any, psi: jax.Array) -> jax.Array:
        return -jnp.mean(psi * log_probability(policy, data)) + 0.1 * jnp.mean(jnp.square(policy["head"]))

    def outer_loss(policy: Any, data: Any) -> jax.Array:
        return -jnp.mean(data["judgement"] * log_probability(policy, data))

    def batches() -> Any:
        return {
            "features": normal(updates, 6, 4),
            "about": normal(updates, 6, 3),
            "taken": jax.nn.one_hot(jnp.arange(updates * 6).reshape(updates, 6) % 3, 3, dtype=float),
            "judgement": normal(updates, 6),
        }

    eta = {"a": normal(3), "b": normal(3)}
    policy = {"hidden": normal(4, 3), "head": normal(3, 3)}
    state = optimiser.init(policy)
    for _ in range(3):
        gradients = jax.tree.map(lambda x: 0.1 * normal(*x.shape), policy)
        updates_, state = optimiser.update(gradients, state)
        policy = apply_updates(policy, updates_)
    return Toy(MetaProblem(advantages, inner_loss, optimiser, outer_loss), eta, policy, state, batches(), batches())


def first_batch(case: Toy) -> Toy:
    """The one-step problem: without the axis of updates."""
    inner, outer = jax.tree.map(lambda x: x[0], (case.inner, case.outer))
    return case._replace(inner=inner, outer=outer)


def only_first_update(case: Toy) -> Toy:
    """The unrolled problem with K = 1."""
    inner, outer = jax.tree.map(lambda x: x[:1], (case.inner, case.outer))
    return case._replace(inner=inner, outer=outer)
