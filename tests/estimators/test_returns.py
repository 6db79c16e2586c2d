"""Returns, TD errors and the λ-estimator: numbers by hand, loops, rlax, and what padding must not do."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.test_util
import numpy as np
import pytest
import rlax
from hypothesis import given
from hypothesis import strategies as st

from paircredit.estimators import discounted_returns, lambda_advantages, td_errors
from tests import oracles
from tests.estimators.episodes import LENGTHS, episodes, random_episode, seeds
from tests.sentences import refused

compiled_returns = jax.jit(discounted_returns)
compiled_errors = jax.jit(td_errors)
compiled_advantages = jax.jit(lambda_advantages)


def as_close_as_float32_allows(actual, expected, absolute_terms):
    """The error is small beside the sum of the absolute values of everything that was added up."""
    np.testing.assert_array_less(np.abs(np.asarray(actual) - expected), 1e-5 * absolute_terms + 1e-30)


class TestByHand:
    rewards = jnp.array([1.0, 2.0, 4.0])
    values = jnp.array([10.0, 20.0, 30.0, 40.0])

    def test_returns(self):
        # G_2 = 4, G_1 = 2 + ½·4 = 4, G_0 = 1 + ½·4 = 3
        np.testing.assert_allclose(discounted_returns(self.rewards, 0.5), [3.0, 4.0, 4.0])

    def test_returns_with_a_discount_per_step(self):
        # The last discount has nothing to discount; a discount of 0 at step 1 cuts G_1 off from R_3.
        discounts = jnp.array([0.5, 0.0, 7.0])
        np.testing.assert_allclose(discounted_returns(self.rewards, discounts), [2.0, 2.0, 4.0])

    def test_returns_of_a_padded_episode(self):
        valid = jnp.array([True, True, False])
        np.testing.assert_allclose(discounted_returns(self.rewards, 0.5, valid), [2.0, 2.0, 0.0])

    def test_td_errors(self):
        # 1 + ½·20 − 10, 2 + ½·30 − 20, 4 + ½·40 − 30
        np.testing.assert_allclose(td_errors(self.rewards, self.values, 0.5), [1.0, -3.0, -6.0])

    def test_termination_is_not_bootstrapped_but_truncation_is(self):
        terminated, cut = jnp.array([0.5, 0.5, 0.0]), jnp.array([0.5, 0.5, 0.5])
        assert td_errors(self.rewards, self.values, terminated)[2] == 4 - 30
        assert td_errors(self.rewards, self.values, cut)[2] == 4 + 20 - 30

    def test_lambda_advantages(self):
        # δ = (1, −3, −6), γλ = ¼: Ψ_2 = −6, Ψ_1 = −3 − 6/4, Ψ_0 = 1 − 4.5/4
        advantages = lambda_advantages(self.rewards, self.values, 0.5, 0.5)
        np.testing.assert_allclose(advantages, [-0.125, -4.5, -6.0])

    def test_a_lambda_per_step_belongs_to_the_state_that_is_reached(self):
        # λ_0 = 0 closes S_1 for what is after it: Ψ_0 = δ_1. λ_1 = 1 opens S_2: Ψ_1 = δ_2 + ½ δ_3.
        lambdas = jnp.array([0.0, 1.0, 9.0])
        np.testing.assert_allclose(lambda_advantages(self.rewards, self.values, 0.5, lambdas), [1.0, -6.0, -6.0])


@given(episodes)
def test_returns_agree_with_a_loop(episode):
    actual = compiled_returns(episode.rewards, episode.discounts, episode.valid)
    arguments = (episode.discounts, episode.valid)
    expected = oracles.loop_returns(episode.rewards, *arguments)
    as_close_as_float32_allows(actual, expected, oracles.loop_returns(np.abs(episode.rewards), *arguments))


@given(episodes)
def test_td_errors_agree_with_a_loop(episode):
    actual = compiled_errors(episode.rewards, episode.values, episode.discounts, episode.valid)
    expected = oracles.loop_td_errors(episode.rewards, episode.values, episode.discounts, episode.valid)
    sizes = np.abs(episode.rewards) + np.abs(episode.values[1:]) + np.abs(episode.values[:-1])
    as_close_as_float32_allows(actual, expected, sizes)


@given(episodes)
def test_lambda_advantages_agree_with_a_double_loop(episode):
    r, v, γ, λ, _, valid = episode
    actual = compiled_advantages(r, v, γ, λ, valid)
    expected = oracles.loop_lambda_advantages(r, v, γ, λ, valid)
    sizes = np.abs(r) + np.abs(v[1:]) + np.abs(v[:-1])
    as_close_as_float32_allows(actual, expected, oracles.loop_returns(sizes, γ * λ, valid))


@given(st.sampled_from(LENGTHS), seeds)
def test_lambda_1_is_monte_carlo_and_lambda_0_is_td(length, seed):
    r, v, γ, _, _, valid = random_episode(seed, length, "end")
    steps = int(valid.sum())
    monte_carlo = oracles.loop_returns(r, γ, valid)
    # The return of an episode that was cut goes on with the value of its final observation.
    bootstrap = np.zeros(length)
    for t in range(steps):
        bootstrap[t] = np.prod(γ[t:steps]) * v[steps]
    expected = np.where(valid, monte_carlo + bootstrap - v[:-1], 0)
    np.testing.assert_allclose(compiled_advantages(r, v, γ, 1.0, valid), expected, atol=1e-4)
    np.testing.assert_allclose(compiled_advantages(r, v, γ, 0.0, valid), compiled_errors(r, v, γ, valid), atol=1e-6)


class TestParityWithRlax:
    """The same numbers as an independent library, with a discount and a λ for every step."""

    @pytest.fixture(params=LENGTHS)
    def episode(self, request):
        return random_episode(request.param, request.param)

    @pytest.fixture(autouse=True)
    def rlax_promotes(self):
        with jax.numpy_dtype_promotion("standard"):
            yield

    def test_discounted_returns(self, episode):
        expected = rlax.discounted_returns(episode.rewards, episode.discounts, np.zeros_like(episode.rewards))
        np.testing.assert_allclose(compiled_returns(episode.rewards, episode.discounts), expected, rtol=1e-5, atol=1e-5)

    def test_lambda_returns(self, episode):
        r, v, γ, λ, _, _ = episode
        np.testing.assert_allclose(
            compiled_advantages(r, v, γ, λ) + v[:-1], rlax.lambda_returns(r, γ, v[1:], λ), rtol=1e-5, atol=1e-5
        )

    def test_generalized_advantage_estimation(self, episode):
        r, v, γ, λ, _, _ = episode
        np.testing.assert_allclose(
            compiled_advantages(r, v, γ, λ),
            rlax.truncated_generalized_advantage_estimation(r, γ, λ, v),
            rtol=1e-5,
            atol=1e-5,
        )


def _returns(r, v, γ, λ, valid):
    return discounted_returns(r, γ, valid)


def _errors(r, v, γ, λ, valid):
    return td_errors(r, v, γ, valid)


ESTIMATORS = {"returns": _returns, "td errors": _errors, "lambda advantages": lambda_advantages}


@pytest.fixture(scope="module", params=ESTIMATORS)
def value_and_gradients(request):
    """The sum of the estimates and its gradients with respect to everything that has one."""
    estimator = ESTIMATORS[request.param]
    return jax.jit(
        jax.value_and_grad(lambda *a: jnp.sum(jnp.arange(1.0, a[0].shape[0] + 1) * estimator(*a)), argnums=(0, 1, 2, 3))
    )


@pytest.mark.parametrize("padding", ["end", "anywhere"])
@pytest.mark.parametrize("length", [1, 4, 27])
def test_padding_is_never_read(value_and_gradients, length, padding):
    """NaN and inf after the end change neither the estimates nor a gradient."""
    for seed in range(6):
        clean = random_episode(seed, length, padding)
        dirty = clean.poisoned(np.random.default_rng(seed))
        r, v, γ, λ, _, valid = clean
        expected, expected_gradients = value_and_gradients(r, v, γ, λ, valid)
        r, v, γ, λ, _, valid = dirty
        actual, gradients = value_and_gradients(r, v, γ, λ, valid)
        assert np.isfinite(actual) and actual == expected
        for gradient, expected_gradient, read in zip(
            gradients,
            expected_gradients,
            (valid, clean.read_values, valid, valid),
            strict=True,
        ):
            np.testing.assert_array_equal(gradient, expected_gradient)
            assert np.isfinite(gradient).all() and not gradient[~read].any()


@pytest.mark.parametrize("name", ESTIMATORS)
def test_gradients_agree_with_finite_differences(name, x64):
    episode = random_episode(3, 6, "end")
    r, v, γ, λ = (jnp.asarray(x, dtype=float) for x in episode[:4])
    valid = jnp.arange(6) < 5
    estimator = jax.jit(lambda *a: ESTIMATORS[name](*a, valid))
    jax.test_util.check_grads(estimator, (r, v, γ, λ), order=2, modes=("rev",), rtol=1e-6)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_vmap_equals_a_loop(name):
    batch = [random_episode(seed, 7, "end") for seed in range(5)]
    estimator = ESTIMATORS[name]
    stacked = [jnp.stack([jnp.asarray(e[i]) for e in batch]) for i in (0, 1, 2, 3, 5)]
    together = jax.vmap(estimator)(*stacked)
    for row, e in zip(together, batch, strict=True):
        r, v, γ, λ, _, valid = (jnp.asarray(x) for x in e)
        np.testing.assert_allclose(row, estimator(r, v, γ, λ, valid), rtol=1e-6, atol=1e-6)


@pytest.mark.usefixtures("users_view")
class TestWrongShapes:
    r, v = jnp.zeros(4), jnp.zeros(5)

    def test_a_batch(self):
        with refused("rewards", "(2, 4)", "(T,)", "vmap"):
            discounted_returns(jnp.zeros((2, 4)), 0.9)

    def test_as_many_values_as_rewards(self):
        with refused("values", "(4,)", "(5,)"):
            td_errors(self.r, self.r, 0.9)

    def test_discounts(self):
        with refused("discounts", "(5,)", "(4,)"):
            discounted_returns(self.r, self.v)

    def test_lambdas(self):
        with refused("lambda_", "(3,)", "(4,)"):
            lambda_advantages(self.r, self.v, 0.9, jnp.zeros(3))

    def test_valid(self):
        with refused("valid", "(5,)", "(4,)"):
            td_errors(self.r, self.v, 0.9, jnp.ones(5, dtype=bool))
