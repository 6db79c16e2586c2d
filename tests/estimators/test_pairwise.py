"""Pairwise credit: numbers by hand, the classical estimators as special cases, and what is never read."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.test_util
import numpy as np
import pytest
from hypothesis import given

from paircredit.estimators import discounted_returns, lambda_advantages, pairwise_sum, pwr, pwtd, td_errors
from paircredit.weights import exponential_weights
from tests import oracles
from tests.estimators.episodes import episodes, lengths, random_episode, seeds
from tests.sentences import refused

compiled_sum = jax.jit(pairwise_sum)
compiled_pwtd = jax.jit(pwtd)
compiled_pwr = jax.jit(pwr)
compiled_weights = jax.jit(exponential_weights, static_argnums=0)
compiled_lambda = jax.jit(lambda_advantages)


class TestByHand:
    # Below the diagonal lies what must not count.
    weights = jnp.array([[1.0, 2.0, 3.0], [99.0, 4.0, 5.0], [99.0, 99.0, 6.0]])
    signal = jnp.array([1.0, 10.0, 100.0])

    def test_sum(self):
        np.testing.assert_allclose(pairwise_sum(self.weights, self.signal), [321.0, 540.0, 600.0])

    def test_sum_with_padding(self):
        valid = jnp.array([True, True, False])
        np.testing.assert_allclose(pairwise_sum(self.weights, self.signal, valid), [21.0, 40.0, 0.0])

    def test_pwr_subtracts_the_value_of_the_weighted_return(self):
        values = jnp.array([1.0, 2.0, 3.0])
        np.testing.assert_allclose(pwr(self.weights, self.signal, values), [320.0, 538.0, 597.0])

    def test_pwr_does_not_use_a_last_value(self):
        values = jnp.array([1.0, 2.0, 3.0, jnp.nan])
        np.testing.assert_allclose(pwr(self.weights, self.signal, values), [320.0, 538.0, 597.0])

    def test_pwr_has_no_baseline_on_padding(self):
        values, valid = jnp.array([1.0, 2.0, jnp.nan]), jnp.array([True, True, False])
        np.testing.assert_allclose(pwr(self.weights, self.signal, values, valid), [20.0, 38.0, 0.0])

    def test_pwtd_weighs_td_errors(self):
        # δ = (1 + ½·4 − 2, 10 + ½·6 − 4, 100 − 6) = (1, 9, 94); the episode terminated.
        values, discounts = jnp.array([2.0, 4.0, 6.0, 8.0]), jnp.array([0.5, 0.5, 0.0])
        expected = [1 + 2 * 9 + 3 * 94, 4 * 9 + 5 * 94, 6 * 94]
        np.testing.assert_allclose(pwtd(self.weights, self.signal, values, discounts), expected)


@given(episodes)
def test_sum_agrees_with_a_double_loop(episode):
    actual = compiled_sum(episode.weights, episode.rewards, episode.valid)
    expected = oracles.loop_pairwise_sum(episode.weights, episode.rewards, episode.valid)
    sizes = oracles.loop_pairwise_sum(np.abs(episode.weights), np.abs(episode.rewards), episode.valid)
    np.testing.assert_array_less(np.abs(actual - expected), 1e-5 * sizes + 1e-30)


@given(lengths, seeds)
def test_pwtd_with_exponential_weights_is_the_lambda_estimator(length, seed):
    r, v, _, _, _, valid = random_episode(seed, length, "end")
    rng = np.random.default_rng(seed)
    γ, λ = (float(x) for x in rng.uniform(0, 1, size=2))
    np.testing.assert_allclose(
        compiled_pwtd(compiled_weights(length, γ, λ), r, v, γ, valid),
        compiled_lambda(r, v, γ, λ, valid),
        rtol=1e-5,
        atol=1e-5,
    )


@given(lengths, seeds)
def test_pwr_with_exponential_weights_is_monte_carlo(length, seed):
    r, v, _, _, _, valid = random_episode(seed, length, "end")
    γ = float(np.random.default_rng(seed).uniform(0, 1))
    expected = oracles.loop_returns(r, np.full(length, γ), valid) - np.where(valid, v[:-1], 0)
    actual = compiled_pwr(compiled_weights(length, γ), r, v, valid)
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


def test_weights_of_one_with_no_discount_are_the_plain_sum_of_what_is_to_come():
    r = jnp.array([1.0, -2.0, 5.0])
    np.testing.assert_allclose(pairwise_sum(jnp.ones((3, 3)), r), discounted_returns(r, 1.0))


def _sum(w, r, v, γ, valid):
    return pairwise_sum(w, r, valid)


def _pwr(w, r, v, γ, valid):
    return pwr(w, r, v, valid)


ESTIMATORS = {"sum": _sum, "pwr": _pwr, "pwtd": pwtd}


@pytest.fixture(scope="module", params=ESTIMATORS)
def value_and_gradients(request):
    estimator = ESTIMATORS[request.param]
    return jax.jit(
        jax.value_and_grad(lambda *a: jnp.sum(jnp.arange(1.0, a[1].shape[0] + 1) * estimator(*a)), argnums=(0, 1, 2, 3))
    )


@pytest.mark.parametrize("padding", ["none", "end", "anywhere"])
@pytest.mark.parametrize("length", [1, 4, 27])
def test_padding_and_the_past_are_never_read(value_and_gradients, length, padding):
    """NaN and inf in padding and below the diagonal change neither the estimates nor a gradient."""
    for seed in range(6):
        clean = random_episode(seed, length, padding)
        dirty = clean.poisoned(np.random.default_rng(seed))
        r, v, γ, _, w, valid = clean
        expected, expected_gradients = value_and_gradients(w, r, v, γ, valid)
        r, v, γ, _, w, valid = dirty
        actual, gradients = value_and_gradients(w, r, v, γ, valid)
        assert np.isfinite(actual) and actual == expected
        for gradient, expected_gradient in zip(gradients, expected_gradients, strict=True):
            np.testing.assert_array_equal(gradient, expected_gradient)
            assert np.isfinite(gradient).all()
        assert not np.asarray(gradients[0])[~clean.counted_pairs].any()


@pytest.mark.parametrize("name", ESTIMATORS)
def test_gradients_agree_with_finite_differences(name, x64):
    r, v, γ, _, w, _ = (jnp.asarray(x, dtype=float) for x in random_episode(3, 6))
    valid = jnp.arange(6) < 5
    estimator = jax.jit(lambda *a: ESTIMATORS[name](*a, valid))
    jax.test_util.check_grads(estimator, (w, r, v, γ), order=2, modes=("rev",), rtol=1e-6)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_vmap_equals_a_loop(name):
    batch = [random_episode(seed, 7, "end") for seed in range(5)]
    stacked = [jnp.stack([jnp.asarray(e[i]) for e in batch]) for i in (4, 0, 1, 2, 5)]
    together = jax.vmap(ESTIMATORS[name])(*stacked)
    for row, e in zip(together, batch, strict=True):
        r, v, γ, _, w, valid = (jnp.asarray(x) for x in e)
        np.testing.assert_allclose(row, ESTIMATORS[name](w, r, v, γ, valid), rtol=1e-6, atol=1e-6)


def test_the_gradient_of_a_weight_is_the_signal_that_it_weighs():
    """∂Ψ_t/∂w_tk = x_k for k ≥ t: rank one, and the reason why metagradients of weights are cheap."""
    r, v, γ, _, w, _ = (jnp.asarray(x) for x in random_episode(0, 5))
    errors = td_errors(r, v, γ)
    credit = jnp.arange(1.0, 6.0)
    gradient = jax.grad(lambda x: credit @ pwtd(x, r, v, γ))(w)
    np.testing.assert_allclose(gradient, np.triu(np.outer(credit, errors)), rtol=1e-6)


@pytest.mark.usefixtures("users_view")
class TestWrongShapes:
    r, v, w = jnp.zeros(4), jnp.zeros(5), jnp.zeros((4, 4))

    def test_weights_with_a_row_per_observation(self):
        with refused("weights", "(5, 5)", "(4, 4)"):
            pairwise_sum(jnp.zeros((5, 5)), self.r)

    def test_a_batch(self):
        with refused("signal", "(2, 4)", "(T,)", "vmap"):
            pairwise_sum(self.w, jnp.zeros((2, 4)))

    def test_values_of_pwr(self):
        with refused("values", "(6,)", "(5,)"):
            pwr(self.w, self.r, jnp.zeros(6))

    def test_values_of_pwtd(self):
        with refused("values", "(4,)", "(5,)"):
            pwtd(self.w, self.r, self.r, 0.9)

    def test_valid(self):
        with refused("valid", "(5,)", "(4,)"):
            pairwise_sum(self.w, self.r, jnp.ones(5, dtype=bool))
