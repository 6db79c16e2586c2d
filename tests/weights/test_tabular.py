"""Tables of pair weights: which entry belongs to which pair, where they start, how large they may be."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from paircredit.weights import FixedTable, PairInputs, SigmoidTable, tables
from tests.sentences import refused

table = np.arange(16.0).reshape(4, 4)
"""Entry (i, j) is 4i + j, so that a weight tells where it came from."""


def test_weights_pair_a_state_with_the_state_that_is_entered():
    """weights[t, k] belongs to S_t and S_{k+1}: 4·S_t + S_{k+1}."""
    observations = jnp.array([0, 2, 1, 3])
    expected = [[2, 1, 3], [8 + 2, 8 + 1, 8 + 3], [4 + 2, 4 + 1, 4 + 3]]
    np.testing.assert_array_equal(FixedTable(jnp.asarray(table))(PairInputs(observations)), expected)


def test_a_sigmoid_table_has_the_same_layout():
    eta = jax.random.normal(jax.random.key(0), (4, 4))
    observations = np.array([3, 3, 0, 1, 2])
    weights = SigmoidTable(eta)(PairInputs(jnp.asarray(observations)))
    assert weights.shape == (4, 4)
    for t in range(4):
        for k in range(4):
            expected = 1 / (1 + np.exp(-eta[observations[t], observations[k + 1]]))
            np.testing.assert_allclose(weights[t, k], expected, rtol=1e-6)


def test_a_pair_that_occurs_twice_gets_both_gradients():
    observations = jnp.array([1, 1, 1])
    gradient = jax.grad(lambda eta: SigmoidTable(eta)(PairInputs(observations)).sum())(jnp.zeros((3, 3)))
    expected = np.zeros((3, 3))
    expected[1, 1] = 4 * 0.25  # four pairs, and sigmoid'(0) = ¼
    np.testing.assert_allclose(gradient, expected)


def test_the_matrix_shows_every_pair():
    np.testing.assert_allclose(SigmoidTable(jnp.array([[0.0, np.log(3.0)]] * 2)).matrix(), [[0.5, 0.75]] * 2)
    np.testing.assert_array_equal(FixedTable(jnp.asarray(table)).matrix(), table)


def test_weights_start_near_one_half_on_both_sides():
    """η uniform in ±0.01 gives weights uniform in ½ ± 0.0025."""
    weights = np.asarray(SigmoidTable.random(jax.random.key(0), 50).matrix())
    assert weights.shape == (50, 50)
    assert np.abs(weights - 0.5).max() < 0.0026
    assert weights.max() > 0.502 and weights.min() < 0.498
    assert abs(weights.mean() - 0.5) < 5 * 0.0025 / np.sqrt(3 * 2500)
    assert len(np.unique(weights)) > 1000


def test_the_scale_of_the_start_can_be_set():
    eta = SigmoidTable.random(jax.random.key(0), 30, scale=2.0).eta
    assert 1.9 < np.abs(eta).max() <= 2.0


def test_a_table_that_does_not_fit_is_refused_before_it_is_made():
    with refused("30000 states", "900,000,000", "smaller environment"):
        SigmoidTable.random(jax.random.key(0), 30_000)


def test_the_largest_table_has_2_to_the_29_entries():
    assert tables.LARGEST_TABLE == 2**29
    tables.check_table_size(23_170)  # 23170² < 2^29 < 23171²
    with refused("23171 states"):
        tables.check_table_size(23_171)
