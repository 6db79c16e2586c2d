"""Standardised advantages: statistics over what is valid, and gradients as documented."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.test_util
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paircredit.estimators import standardise
from tests.estimators.episodes import seeds
from tests.sentences import refused

compiled = jax.jit(standardise)


def test_by_hand():
    # Mean 2 and deviation 1 of what is valid; ε = 1 halves everything.
    x, valid = jnp.array([1.0, 3.0, 1e9]), jnp.array([True, True, False])
    np.testing.assert_allclose(standardise(x, valid, epsilon=1.0), [-0.5, 0.5, 0.0])


@given(st.sampled_from([(7,), (3, 4), (2, 3, 5)]), seeds, st.sampled_from([1e-3, 1.0, 1e10]))
def test_mean_0_and_deviation_1_over_the_valid_entries_of_the_whole_batch(shape, seed, scale):
    rng = np.random.default_rng(seed)
    x = (scale * (rng.normal(size=shape) + 5)).astype(np.float32)
    valid = rng.random(shape) < 0.7
    valid.flat[:2] = True
    result = np.asarray(compiled(x, valid))
    assert abs(result[valid].mean()) < 1e-4
    assert abs(result[valid].std() - 1) < 1e-3
    assert not result[~valid].any()


@pytest.fixture(scope="module", params=[False, True], ids=["detached", "through the statistics"])
def value_and_gradient(request):
    def weighted_sum(x, valid):
        standardised = standardise(x, valid, differentiate_statistics=request.param)
        return jnp.sum(jnp.arange(1.0, x.shape[0] + 1) * standardised)

    return jax.jit(jax.value_and_grad(weighted_sum))


@given(length=st.sampled_from([1, 7, 12]), seed=seeds)
def test_padding_is_never_read(value_and_gradient, length, seed):
    rng = np.random.default_rng(seed)
    clean, valid = rng.normal(size=length).astype(np.float32), rng.random(length) < 0.6
    poison = rng.choice([np.nan, np.inf, -np.inf], size=length).astype(np.float32)
    expected = value_and_gradient(clean, valid)
    actual = value_and_gradient(np.where(valid, clean, poison), valid)
    np.testing.assert_array_equal(actual[0], expected[0])
    np.testing.assert_array_equal(actual[1], expected[1])
    assert np.isfinite(actual[0]) and np.isfinite(actual[1]).all()


def test_nothing_valid_gives_zeros():
    x = jnp.array([1.0, jnp.nan])
    np.testing.assert_array_equal(standardise(x, jnp.zeros(2, dtype=bool)), [0.0, 0.0])


@pytest.mark.parametrize("through", [False, True])
@pytest.mark.parametrize("number", [0.0, 1.0, -4.0])
def test_a_constant_gives_0_and_a_finite_gradient(number, through):
    x = jnp.full((8,), number)
    np.testing.assert_array_equal(standardise(x, differentiate_statistics=through), np.zeros(8))
    gradient = jax.grad(lambda a: standardise(a, differentiate_statistics=through)[0])(x)
    assert np.isfinite(gradient).all()


@given(st.floats(-1e6, 1e6, width=32), st.sampled_from([1, 3, 7, 24, 40]))
def test_any_constant_gives_0(number, length):
    """Also where the mean of equal numbers is not that number, by rounding."""
    assert np.abs(compiled(np.full(length, number, dtype=np.float32))).max() < 1e-2


class TestGradients:
    """z = (x − m)/(s + ε): ∂z_i/∂x_j is δ_ij/(s + ε) with constant statistics, and the full thing without."""

    x = np.array([0.3, -1.0, 2.0, 0.7])
    epsilon = 0.1

    def jacobian(self, **settings) -> np.ndarray:
        with jax.enable_x64(True):
            jacobian = jax.jit(jax.jacobian(lambda a: standardise(a, epsilon=self.epsilon, **settings)))
            return np.asarray(jacobian(jnp.asarray(self.x)))

    def test_detached(self):
        expected = np.eye(4) / (self.x.std() + self.epsilon)
        np.testing.assert_allclose(self.jacobian(), expected, rtol=1e-12)

    def test_through_the_statistics(self):
        n, s = 4, self.x.std()
        centred = self.x - self.x.mean()
        # ∂m/∂x_j = 1/n and ∂s/∂x_j = (x_j − m)/(n s)
        expected = (np.eye(n) - 1 / n) / (s + self.epsilon) - np.outer(centred, centred) / (
            n * s * (s + self.epsilon) ** 2
        )
        np.testing.assert_allclose(self.jacobian(differentiate_statistics=True), expected, rtol=1e-12, atol=1e-14)

    def test_through_the_statistics_agrees_with_finite_differences(self, x64):
        valid = jnp.array([True, True, False, True])
        jax.test_util.check_grads(
            jax.jit(lambda a: standardise(a, valid, differentiate_statistics=True)),
            (jnp.asarray(self.x),),
            order=2,
            modes=("rev",),
            rtol=1e-6,
        )

    @pytest.mark.parametrize("through", [False, True])
    def test_statistics_of_another_array_are_constants(self, through, x64):
        x, other = jnp.asarray(self.x), jnp.array([2.0, 4.0, 2.0, 4.0])

        def apply(a, b):
            return standardise(a, epsilon=0.0, differentiate_statistics=through, statistics_of=b)

        np.testing.assert_allclose(apply(x, other), self.x - 3, rtol=1e-12)
        by_x, by_other = jax.jacobian(apply, argnums=(0, 1))(x, other)
        np.testing.assert_allclose(by_x, np.eye(4), rtol=1e-12)
        assert not by_other.any()

    def test_statistics_of_itself_change_nothing(self):
        x = jnp.asarray(self.x, dtype=jnp.float32)
        np.testing.assert_array_equal(standardise(x, statistics_of=x), standardise(x))


@pytest.mark.usefixtures("users_view")
class TestWrongShapes:
    def test_valid(self):
        with refused("valid", "(3,)", "(4,)"):
            standardise(jnp.zeros(4), jnp.ones(3, dtype=bool))

    def test_statistics_of(self):
        with refused("statistics_of", "(2, 4)", "(4,)"):
            standardise(jnp.zeros(4), statistics_of=jnp.zeros((2, 4)))
