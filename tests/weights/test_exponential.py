"""Weights that only look at the delay."""

from __future__ import annotations

import jax
import numpy as np

from paircredit.weights import exponential_weights


def test_by_hand():
    expected = [[1.0, 0.5, 0.25], [0.0, 1.0, 0.5], [0.0, 0.0, 1.0]]
    np.testing.assert_allclose(exponential_weights(3, 0.5), expected)


def test_discount_and_lambda_multiply():
    np.testing.assert_allclose(exponential_weights(2, 0.5, 0.4), [[1.0, 0.2], [0.0, 1.0]], rtol=1e-6)


def test_a_decay_of_0_credits_only_what_follows_at_once():
    np.testing.assert_array_equal(exponential_weights(4, 0.0), np.eye(4))
    np.testing.assert_array_equal(exponential_weights(4, 0.9, 0.0), np.eye(4))


def test_the_gradient_at_0_is_that_of_a_polynomial():
    """Σ_tk (γλ)^(k−t) of 5 steps is 5 + 4γλ + 3(γλ)² + …: slope 4·λ in γ at 0, and no NaN from 0^0."""
    slopes = jax.grad(lambda γ, λ: exponential_weights(5, γ, λ).sum(), argnums=(0, 1))
    np.testing.assert_allclose(slopes(0.0, 0.5), (2.0, 0.0), rtol=1e-6)
    np.testing.assert_allclose(slopes(0.5, 0.0), (0.0, 2.0), rtol=1e-6)
    np.testing.assert_allclose(slopes(0.0, 0.0), (0.0, 0.0))
