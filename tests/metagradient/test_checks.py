"""The check is checked: it accepts the right gradient, catches a wrong one, and refuses float32."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.metagradient import check_metagradient, unrolled_metagradient, unrolled_objective
from tests.metagradient.toy import OPTIMISERS, toy
from tests.sentences import refused


def cubic(x):
    return jnp.sum(x["a"] ** 3) + jnp.sum(jnp.sin(x["b"]))


@pytest.fixture
def point(x64):
    return {"a": jnp.array([1.0, -2.0]), "b": jnp.array([0.5])}


def test_the_right_gradient_passes(point):
    gradient = {"a": 3 * point["a"] ** 2, "b": jnp.cos(point["b"])}
    checked = check_metagradient(cubic, point, gradient=gradient, directions=5)
    assert checked.relative_error < 1e-9
    assert checked.analytic.shape == checked.numeric.shape == (5,)


def test_without_a_gradient_it_takes_that_of_jax(point):
    assert check_metagradient(cubic, point).relative_error < 1e-9


@pytest.mark.parametrize("error", [1e-3, 1e-2])
def test_a_slightly_wrong_gradient_is_caught(point, error):
    gradient = jax.tree.map(lambda g: (1 + error) * g, jax.grad(cubic)(point))
    np.testing.assert_allclose(check_metagradient(cubic, point, gradient=gradient).relative_error, error, rtol=1e-3)


def test_one_wrong_entry_is_caught(point):
    gradient = jax.grad(cubic)(point)
    gradient["b"] = jnp.zeros(1)
    assert check_metagradient(cubic, point, gradient=gradient).relative_error > 1e-2


def test_a_nan_gradient_does_not_pass(point):
    gradient = jax.tree.map(lambda g: g * jnp.nan, jax.grad(cubic)(point))
    assert not check_metagradient(cubic, point, gradient=gradient).relative_error < 1e9


def test_float32_is_refused():
    with refused("float64", "enable_x64"):
        check_metagradient(lambda x: jnp.sum(x**2), jnp.ones(3, dtype=jnp.float32))


def test_a_tape_is_needed_where_the_derivative_holds_something_fixed(x64):
    """Plain differences move the second moment that `numerator` holds fixed, and so they disagree."""
    case = toy(OPTIMISERS["adam, numerator"](), updates=1)
    gradient, _ = unrolled_metagradient(case.problem, *case[1:])
    plain = check_metagradient(
        lambda eta: unrolled_objective(case.problem, eta, *case[2:])[0], case.eta, gradient=gradient
    )
    taped = check_metagradient(
        lambda eta, tape: unrolled_objective(case.problem, eta, *case[2:], tape), case.eta, has_tape=True
    )
    assert plain.relative_error > 1e-2
    assert taped.relative_error < 1e-6
