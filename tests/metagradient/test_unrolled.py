"""The metagradient through several inner updates."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from paircredit.metagradient import check_metagradient, unrolled_metagradient, unrolled_objective
from tests.metagradient.toy import BITING_CLIP, OPTIMISERS, toy
from tests.rungs import nightly_but

EVERY_DAY = ("adam", "adam, b1, numerator", "rmsprop, inside")
"""A metagradient through the moments, one that holds some fixed, and another optimiser."""


@pytest.mark.parametrize("name", nightly_but(EVERY_DAY, OPTIMISERS))
def test_four_clipped_updates_agree_with_finite_differences(name, x64):
    case = toy(OPTIMISERS[name](clip_norm=BITING_CLIP), updates=4)
    gradient, loss = jax.jit(lambda *data: unrolled_metagradient(case.problem, *data))(*case[1:])

    @jax.jit
    def objective(eta, tape):
        return unrolled_objective(case.problem, eta, *case[2:], tape)

    checked = check_metagradient(objective, case.eta, gradient=gradient, has_tape=True)
    assert checked.relative_error < 1e-6
    np.testing.assert_allclose(loss, objective(case.eta, None)[0], rtol=1e-12)


def test_the_objective_is_the_sum_of_the_outer_losses_along_the_way(x64):
    """The replay in plain Python: update, evaluate, update, evaluate, …"""
    problem, eta, policy, state, inner, outer = toy(OPTIMISERS["adam, b1"](clip_norm=BITING_CLIP), updates=3)
    total = 0.0
    for i in range(3):
        data, evaluation = jax.tree.map(lambda x, i=i: x[i], (inner, outer))
        gradients = jax.grad(problem.inner_loss)(policy, data, problem.advantages(eta, data, None))
        updates, state = problem.optimiser.update(gradients, state)
        policy = jax.tree.map(lambda p, u: p + u, policy, updates)
        total += problem.outer_loss(policy, evaluation)
    actual, _ = unrolled_objective(problem, eta, *toy(problem.optimiser, updates=3)[2:])
    np.testing.assert_allclose(actual, total, rtol=1e-12)


def test_early_updates_carry_metagradient(x64):
    """The sum of greedy one-step gradients is not the gradient through both updates."""
    case = toy(OPTIMISERS["sgd"](), updates=2)
    whole, _ = unrolled_metagradient(case.problem, *case[1:])
    data = jax.tree.map(lambda x: x[:1], (case.inner, case.outer))
    first, _ = unrolled_metagradient(case.problem, case.eta, case.policy, case.state, *data)
    # What the second loss adds consists of its own update and of its way back through the first.
    gradients = jax.grad(case.problem.inner_loss)(
        case.policy,
        first_batch := jax.tree.map(lambda x: x[0], case.inner),
        case.problem.advantages(case.eta, first_batch, None),
    )
    updates, state = case.problem.optimiser.update(gradients, case.state)
    theta = jax.tree.map(lambda p, u: p + u, case.policy, updates)
    data = jax.tree.map(lambda x: x[1:], (case.inner, case.outer))
    second, _ = unrolled_metagradient(case.problem, case.eta, theta, state, *data)
    greedy = jax.tree.map(lambda a, b: a + b, first, second)
    assert max(np.abs(w - g).max() for w, g in zip(whole.values(), greedy.values(), strict=True)) > 1e-3
