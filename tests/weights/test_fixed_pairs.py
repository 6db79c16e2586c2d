"""Weights by the clock, and the handcrafted ones of Key-to-Door."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.envs.key_to_door import KeyToDoorConfig
from paircredit.types import PixelObservation
from paircredit.weights import FixedPairs, PairInputs, handcrafted_weights


def by_the_book(key_steps, apple_steps, door_steps, discount):
    """The paper's cases, one pair at a time: the action at i, the reward R_j."""
    last_apple, end = key_steps + apple_steps, key_steps + apple_steps + door_steps
    weights = np.zeros((end, end))
    for i in range(end):
        for j in range(i + 1, end + 1):
            if i < key_steps:
                weight = discount ** (j - last_apple - 1) if j > last_apple else 0
            elif i < last_apple:
                weight = discount ** (j - i - 1) if j <= last_apple else 0
            else:
                weight = discount ** (j - i - 1)
            weights[i, j - 1] = weight
    return weights


@pytest.mark.parametrize("phases", [(15, 90, 15), (2, 3, 4), (1, 1, 1)])
def test_handcrafted_key_to_door_weights(phases, x64):
    key_steps, apple_steps, door_steps = phases
    env = KeyToDoorConfig(key_steps=key_steps, apple_steps=apple_steps, door_steps=door_steps).build()
    np.testing.assert_allclose(handcrafted_weights(env).pairs, by_the_book(*phases, 0.92), rtol=1e-12)
    np.testing.assert_allclose(handcrafted_weights(env, discount=0.5).pairs, by_the_book(*phases, 0.5), rtol=1e-12)


def test_some_key_to_door_weights_by_hand():
    """w_{ij} with the paper's numbering: actions 0 … 119, rewards 1 … 120."""
    pairs = handcrafted_weights(KeyToDoorConfig().build()).pairs
    assert pairs.shape == (120, 120) and pairs.dtype == jnp.float32
    for i, j, weight in (
        (0, 106, 1.0),  # the discount of the key's credit begins with the door phase
        (14, 106, 1.0),
        (3, 108, 0.92**2),
        (0, 1, 0.0),
        (14, 105, 0.0),
        (15, 16, 1.0),
        (15, 105, 0.92**89),
        (104, 105, 1.0),
        (104, 106, 0.0),
        (105, 106, 1.0),
        (105, 120, 0.92**14),
    ):
        assert float(pairs[i, j - 1]) == pytest.approx(weight, rel=1e-5)


def test_fixed_pairs_do_not_look():
    pairs = jnp.arange(9.0).reshape(3, 3)
    weights = FixedPairs(pairs)
    seen = PairInputs(PixelObservation(jnp.zeros((4, 7, 11, 3), jnp.uint8), jnp.zeros((4, 1), bool)))
    np.testing.assert_array_equal(weights(seen), pairs)
    np.testing.assert_array_equal(weights(None), pairs)
    np.testing.assert_array_equal(weights.matrix(), pairs)
    batch = jax.vmap(weights)(jax.tree.map(lambda x: jnp.stack([x, x]), seen))
    np.testing.assert_array_equal(batch, jnp.stack([pairs, pairs]))
