"""Synthetic returns: hand numbers, padding, gradients."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from paircredit.estimators import associated_rewards, synthetic_rewards
from tests.sentences import refused


def test_a_cause_and_its_effect():
    """The state at step 1 causes +5 at step 3; the one at step 0 brings 1 that arrives nowhere but at step 2, half."""
    contributions = jnp.array([1.0, 5.0, -1.0, 9.0])
    gates = jnp.array([1.0, 0.0, 0.5, 1.0])
    biases = jnp.array([0.25, 0.0, -3.0, 0.0])
    np.testing.assert_allclose(associated_rewards(contributions, gates, biases), [0.25, 0, 0, 5])


def test_a_state_does_not_explain_its_own_reward():
    """Nor rewards before it: the sum is over states strictly before."""
    jacobian = jax.jacobian(lambda c: associated_rewards(c, jnp.ones(4), jnp.zeros(4)))(jnp.zeros(4))
    np.testing.assert_array_equal(jacobian, np.tril(np.ones((4, 4)), k=-1))


def test_rewards_by_hand():
    rewards, contributions = jnp.array([0.0, 0.0, 0.0, 5.0]), jnp.array([1.0, 10.0, 0.0, -1.0])
    np.testing.assert_allclose(synthetic_rewards(rewards, contributions, 0.3), [0.3, 3, 0, 4.7], rtol=1e-6)
    np.testing.assert_allclose(synthetic_rewards(rewards, contributions, 0.5, 0.0), [0.5, 5, 0, -0.5])
    np.testing.assert_array_equal(synthetic_rewards(rewards, contributions, 0.0), rewards)


def test_padding_is_never_read():
    valid = jnp.array([True, True, True, False])
    dirty = jnp.array([1.0, 2.0, 3.0, jnp.nan])

    def both(x):
        return associated_rewards(x, x, x, valid), synthetic_rewards(x, x, 0.3, 1.0, valid)

    (predicted, paid), gradient = both(dirty), jax.grad(lambda x: sum(y.sum() for y in both(x)))(dirty)
    np.testing.assert_allclose(predicted, [1, 2 * 1 + 2, 3 * 3 + 3, 0])
    np.testing.assert_allclose(paid, [1.3, 2.6, 3.9, 0], rtol=1e-6)
    assert np.isfinite(gradient).all() and gradient[3] == 0


def test_wrong_shapes_are_refused(users_view):
    with refused("gates", "(3,)", "(4,)"):
        associated_rewards(jnp.zeros(4), jnp.zeros(3), jnp.zeros(4))
    with refused("contributions", "(3,)", "(4,)"):
        synthetic_rewards(jnp.zeros(4), jnp.zeros(3), 0.3)
    with refused("rewards", "(2, 4)", "vmap"):
        synthetic_rewards(jnp.zeros((2, 4)), jnp.zeros((2, 4)), 0.3)
