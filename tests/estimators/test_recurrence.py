"""x_t = inputs_t + decays_t x_{t+1}, by an associative scan."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from paircredit.estimators.returns import backward_recurrence


def test_by_hand():
    inputs, decays = jnp.array([1.0, 2.0, 4.0]), jnp.array([0.5, 0.25, 8.0])
    # x_2 = 4, x_1 = 2 + 0.25·4 = 3, x_0 = 1 + 0.5·3 = 2.5; the last decay has nothing to multiply.
    np.testing.assert_allclose(backward_recurrence(inputs, decays), [2.5, 3.0, 4.0])


def test_lengths_up_to_40_agree_with_a_loop():
    """How an associative scan is cut into halves depends on the length."""
    rng, recurrence = np.random.default_rng(0), jax.jit(backward_recurrence)
    for length in [*range(1, 18), 31, 32, 33, 40]:
        inputs, decays = rng.normal(size=(2, length)).astype(np.float32)
        expected, following = np.zeros(length), 0.0
        for t in reversed(range(length)):
            following = expected[t] = inputs[t] + decays[t] * following
        scale = np.abs(expected).max()
        np.testing.assert_allclose(
            recurrence(jnp.asarray(inputs), jnp.asarray(decays)), expected, atol=1e-5 * scale, err_msg=str(length)
        )
