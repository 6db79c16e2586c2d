"""Optimisers that compute what optax computes, with derivatives that stay finite where those of optax do not."""

from __future__ import annotations

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paircredit.metagradient import adam, apply_updates, rmsprop, sgd
from paircredit.metagradient.optimisers import clip_by_global_norm, global_norm
from tests.metagradient.toy import OPTIMISERS
from tests.sentences import refused

PAIRS = {
    "sgd": (sgd(0.1), optax.sgd(0.1)),
    "adam": (adam(0.1), optax.adam(0.1, b1=0.0)),
    "adam, b1": (adam(0.1, b1=0.9, b2=0.95), optax.adam(0.1, b1=0.9, b2=0.95)),
    "adam, eps": (adam(0.1, eps=0.3, eps_root=0.2), optax.adam(0.1, b1=0.0, eps=0.3, eps_root=0.2)),
    "rmsprop, inside": (rmsprop(0.1, eps=0.01), optax.rmsprop(0.1, decay=0.99, eps=0.01)),
    "rmsprop, outside": (
        rmsprop(0.1, decay=0.9, eps=0.01, eps_in_root=False),
        optax.rmsprop(0.1, decay=0.9, eps=0.01, eps_in_sqrt=False),
    ),
    "sgd, clipped": (sgd(0.1, clip_norm=1.5), optax.chain(optax.clip_by_global_norm(1.5), optax.sgd(0.1))),
    "adam, clipped": (
        adam(0.1, clip_norm=1.5),
        optax.chain(optax.clip_by_global_norm(1.5), optax.adam(0.1, b1=0.0)),
    ),
    "rmsprop, clipped": (
        rmsprop(0.1, clip_norm=1.5),
        optax.chain(optax.clip_by_global_norm(1.5), optax.rmsprop(0.1, decay=0.99, eps=1e-5)),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_steps_are_those_of_optax(name):
    """Ten steps with gradients of norms from 0 to about 5, so that the clip of 1.5 bites in some and not in others."""
    ours, theirs = PAIRS[name]
    rng = np.random.default_rng(0)
    parameters = {"a": jnp.ones(3), "b": jnp.ones((2, 2))}
    mine, other = (parameters, ours.init(parameters)), (parameters, theirs.init(parameters))
    step, their_step = jax.jit(ours.update), jax.jit(theirs.update)
    for scale in (1.0, 0.1, 3.0, 0.0, 1.0, 0.01, 2.0, 0.3, 1.0, 1.0):
        gradients = {
            name: jnp.asarray(scale * rng.normal(size=x.shape), dtype=x.dtype) for name, x in parameters.items()
        }
        updates, state = step(gradients, mine[1])
        mine = (apply_updates(mine[0], updates), state)
        with jax.numpy_dtype_promotion("standard"):
            updates, state = their_step(gradients, other[1])
        other = (optax.apply_updates(other[0], updates), state)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6), mine[0], other[0])


@pytest.mark.parametrize("name", ["sgd", "adam", "adam, b1", "rmsprop, inside"])
def test_the_switch_changes_the_derivative_and_not_the_step(name):
    everything, numerator = (
        {
            "sgd": lambda d: sgd(0.1, clip_norm=0.5, differentiate=d),
            "adam": lambda d: adam(0.1, clip_norm=0.5, differentiate=d),
            "adam, b1": lambda d: adam(0.1, b1=0.9, clip_norm=0.5, differentiate=d),
            "rmsprop, inside": lambda d: rmsprop(0.1, clip_norm=0.5, differentiate=d),
        }[name](switch)
        for switch in ("everything", "numerator")
    )
    gradient = jnp.array([1.0, -2.0, 0.3])
    state = everything.init(gradient)
    np.testing.assert_array_equal(everything.update(gradient, state)[0], numerator.update(gradient, state)[0])
    slopes = [np.asarray(jax.jacobian(lambda g, o=o: o.update(g, state)[0])(gradient)) for o in (everything, numerator)]
    assert np.abs(slopes[0] - slopes[1]).max() > 0.01 * np.abs(slopes[1]).max()


class TestDerivativesByHand:
    gradient = jnp.array([2.0, -0.5])

    def jacobian(self, optimiser, gradient=None):
        gradient = self.gradient if gradient is None else gradient
        return jax.jacobian(lambda g: optimiser.update(g, optimiser.init(g))[0])(gradient)

    def test_the_first_adam_step_is_a_sign_step_with_almost_no_derivative(self):
        optimiser = adam(0.1)
        step, _ = optimiser.update(self.gradient, optimiser.init(self.gradient))
        np.testing.assert_allclose(step, [-0.1, 0.1], rtol=1e-4)
        np.testing.assert_allclose(self.jacobian(optimiser), np.zeros((2, 2)), atol=1e-5)

    def test_its_numerator_is_a_preconditioned_sgd_step(self):
        # The corrected root of the second moment of a first step is |g|.
        np.testing.assert_allclose(
            self.jacobian(adam(0.1, differentiate="numerator")), np.diag([-0.1 / 2.0, -0.1 / 0.5]), rtol=1e-5
        )

    def test_the_second_adam_step_carries_half(self):
        """With equal gradients the n-th step has derivative (α/|g|)(1 − 1/n), but for the decay of the moment."""
        optimiser = adam(0.1)
        _, state = optimiser.update(self.gradient, optimiser.init(self.gradient))
        slope = jax.jacobian(lambda g: optimiser.update(g, state)[0])(self.gradient)
        np.testing.assert_allclose(np.diag(slope), [-0.5 * 0.1 / 2.0, -0.5 * 0.1 / 0.5], rtol=2e-3)

    def test_the_derivative_of_a_clip_projects_on_the_sphere(self):
        """d(c g/|g|)/dg = (c/|g|)(I − ĝĝᵀ), and with the factor held fixed (c/|g|) I."""
        norm = np.linalg.norm(self.gradient)
        unit = np.asarray(self.gradient) / norm
        full = -0.1 * 0.5 / norm * (np.eye(2) - np.outer(unit, unit))
        np.testing.assert_allclose(self.jacobian(sgd(0.1, clip_norm=0.5)), full, rtol=1e-5, atol=1e-8)
        fixed = -0.1 * 0.5 / norm * np.eye(2)
        np.testing.assert_allclose(
            self.jacobian(sgd(0.1, clip_norm=0.5, differentiate="numerator")), fixed, rtol=1e-5, atol=1e-8
        )

    def test_detached_gradients_set_the_scale_of_the_numerator(self):
        """What a finite-difference check needs: the scale of one gradient under the direction of another."""
        optimiser = adam(0.1, differentiate="numerator")
        step, _ = optimiser.update(self.gradient, optimiser.init(self.gradient), jnp.array([4.0, 1.0]))
        np.testing.assert_allclose(step, [-0.1 * 2 / 4, 0.1 * 0.5 / 1], rtol=1e-5)


class TestWhereAGradientIsZero:
    """Unvisited rows of a table: the gradient is exactly 0, the optimiser is fresh."""

    gradient = jnp.array([0.0, 1.0, 0.0])

    def test_the_derivative_of_optax_adam_is_nan(self):
        """Why this module exists (optax#882); if this fails one day, optax has mended it."""
        optimiser = optax.adam(0.1, b1=0.0)
        state = optimiser.init(self.gradient)
        with jax.numpy_dtype_promotion("standard"):
            slope = jax.jacobian(lambda g: optimiser.update(g, state)[0])(self.gradient)
        assert np.isnan(slope).any()

    @pytest.mark.parametrize("clip", [None, 0.5])
    @pytest.mark.parametrize("name", OPTIMISERS)
    def test_ours_are_finite(self, name, clip):
        optimiser = OPTIMISERS[name](clip_norm=clip)

        def step(gradient, state):
            updates, after = optimiser.update(gradient, state)
            floats = [x for x in jax.tree.leaves(after) if jnp.issubdtype(x.dtype, jnp.floating)]
            return updates, floats

        derivative = jax.jit(jax.jacobian(step))
        for gradient in (self.gradient, jnp.zeros(3)):
            fresh = optimiser.init(gradient)
            for x in jax.tree.leaves((step(gradient, fresh), derivative(gradient, fresh))):
                assert np.isfinite(x).all()
            np.testing.assert_array_equal(step(gradient, fresh)[0][np.asarray(gradient) == 0], 0.0)


compiled_derivative = {
    name: jax.jit(lambda g, make=make: jax.jvp(lambda x: make().update(x, make().init(x))[0], (g,), (jnp.ones(3),)))
    for name, make in OPTIMISERS.items()
}


@given(st.sampled_from(sorted(OPTIMISERS)), st.lists(st.floats(-30, 9), min_size=3, max_size=3))
def test_steps_and_derivatives_are_finite_at_any_magnitude(name, exponents):
    gradient = (10.0 ** np.array(exponents) * [1, -1, 1]).astype(np.float32)
    for x in compiled_derivative[name](gradient):
        assert np.isfinite(x).all()


class TestClipping:
    tree: ClassVar = {"a": jnp.array([3.0]), "b": jnp.array([[4.0]])}

    def test_the_norm_is_over_all_leaves(self):
        assert global_norm(self.tree) == 5.0

    def test_a_longer_tree_is_shortened_to_the_limit(self):
        clipped = clip_by_global_norm(self.tree, 1.0)
        np.testing.assert_allclose((clipped["a"][0], clipped["b"][0, 0]), (0.6, 0.8), rtol=1e-6)

    @pytest.mark.parametrize("limit", [None, 5.0, 7.0])
    def test_a_shorter_tree_is_left_alone(self, limit):
        clipped = clip_by_global_norm(self.tree, limit)
        assert (clipped["a"][0], clipped["b"][0, 0]) == (3.0, 4.0)

    def test_the_norm_of_another_tree(self):
        other = {"a": jnp.array([6.0]), "b": jnp.array([[8.0]])}
        clipped = clip_by_global_norm(self.tree, 5.0, norm_of=other)
        np.testing.assert_allclose((clipped["a"][0], clipped["b"][0, 0]), (1.5, 2.0), rtol=1e-6)

    def test_derivatives_at_0_are_0_and_1(self):
        zeros = jnp.zeros(3)
        np.testing.assert_array_equal(jax.grad(global_norm)(zeros), zeros)
        np.testing.assert_array_equal(jax.jacobian(lambda g: clip_by_global_norm(g, 1.0))(zeros), np.eye(3))


@pytest.mark.usefixtures("users_view")
@pytest.mark.parametrize("make", [sgd, adam, rmsprop])
def test_an_unknown_switch_is_refused(make):
    with refused("'denominator'", "'everything'", "'numerator'"):
        optimiser = make(0.1, differentiate="denominator")
        optimiser.update(jnp.ones(2), optimiser.init(jnp.ones(2)))
