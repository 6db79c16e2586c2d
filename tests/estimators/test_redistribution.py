"""Redistributed rewards: hand numbers, return equivalence, masks, quality and mixing."""

from __future__ import annotations

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st

from paircredit.estimators import redistribute
from paircredit.estimators.redistribution import (
    mark_sequences,
    mix_advantages,
    prediction_differences,
    prediction_quality,
    redistribute_stream,
)
from tests.estimators.episodes import LENGTHS, random_episode
from tests.sentences import refused

PREDICTIONS = jnp.array([2.0, 2.5, 7.0, 6.0])
REWARDS = jnp.array([0.0, 0.0, 0.0, 10.0])
compiled = {
    name: jax.jit(lambda g, r, v, name=name: redistribute(g, r, v, name)) for name in ("last", "spread", "none")
}


@pytest.mark.parametrize(
    "compensation, expected",
    [
        ("none", [2.0, 0.5, 4.5, -1.0]),
        ("last", [2.0, 0.5, 4.5, 3.0]),
        ("spread", [3.0, 1.5, 5.5, 0.0]),
    ],
)
def test_hand_numbers(compensation, expected):
    """The prediction ends 4 below the return of 10."""
    np.testing.assert_array_equal(compiled[compensation](PREDICTIONS, REWARDS, jnp.ones(4, dtype=bool)), expected)


def test_without_a_mask_all_steps_count():
    np.testing.assert_array_equal(prediction_differences(PREDICTIONS), [2.0, 0.5, 4.5, -1.0])
    np.testing.assert_array_equal(redistribute(PREDICTIONS, REWARDS), [2.0, 0.5, 4.5, 3.0])


def test_the_last_step_is_the_last_of_the_episode_and_padding_gives_nothing():
    valid = jnp.array([True, True, False, False])
    rewards = jnp.array([1.0, 2.0, np.nan, np.inf])
    predictions = jnp.array([2.0, 2.5, np.nan, -np.inf])
    np.testing.assert_array_equal(compiled["last"](predictions, rewards, valid), [2.0, 1.0, 0.0, 0.0])
    np.testing.assert_array_equal(compiled["spread"](predictions, rewards, valid), [2.25, 0.75, 0.0, 0.0])
    np.testing.assert_array_equal(compiled["none"](predictions, rewards, valid), [2.0, 0.5, 0.0, 0.0])


@pytest.mark.parametrize("compensation", ["last", "spread"])
@hypothesis.given(
    seed=st.integers(0, 10**6), length=st.sampled_from(LENGTHS), padding=st.sampled_from(["none", "end", "anywhere"])
)
def test_the_sum_is_the_return_and_padding_is_never_read(compensation, seed, length, padding):
    clean = random_episode(seed, length, padding)
    episode = clean.poisoned(np.random.default_rng(seed))
    predictions = np.where(clean.valid, clean.values[:-1], np.nan)
    found = np.asarray(compiled[compensation](predictions, episode.rewards, episode.valid))
    assert (found[~clean.valid] == 0).all()
    expected = clean.rewards[clean.valid].astype(np.float64).sum() if clean.valid.any() else 0.0
    np.testing.assert_allclose(found.astype(np.float64).sum(), expected, atol=1e-5 * (1 + np.abs(clean.rewards).sum()))
    # Without compensation the sum is the last prediction.
    plain = np.asarray(compiled["none"](predictions, episode.rewards, episode.valid))
    last = clean.values[:-1][clean.valid][-1] if clean.valid.any() else 0.0
    np.testing.assert_allclose(plain.astype(np.float64).sum(), last, atol=1e-4)


def test_a_perfect_prediction_leaves_nothing_to_expect():
    """If g knows the return from the decision on, everything is paid there and nothing later."""
    known = jnp.array([0.0, 10.0, 10.0, 10.0])
    np.testing.assert_array_equal(redistribute(known, REWARDS), [0.0, 10.0, 0.0, 0.0])


class TestQuality:
    def test_hand_numbers(self):
        """Errors of 1 and 0 where 2 would be nothing worth: 0.75; of 4: nothing; of none: 1."""
        returns = jnp.array([10.0, -4.0])
        assert prediction_quality(jnp.array([9.0, -4.0]), returns, 10.0) == 0.75
        assert prediction_quality(jnp.array([6.0, 0.0]), returns, 10.0) == 0.0
        assert prediction_quality(returns, returns, 10.0) == 1.0

    def test_the_tolerance_is_a_part_of_the_largest_return(self):
        returns = jnp.array([10.0, -4.0])
        assert prediction_quality(jnp.array([6.0, 0.0]), returns, 10.0, tolerance=0.8) == 0.5
        assert prediction_quality(jnp.array([6.0, 0.0]), returns, 40.0) == 0.5

    def test_nothing_is_trusted_where_every_return_was_zero(self):
        assert prediction_quality(jnp.zeros(3), jnp.zeros(3), 0.0) == 0.0


def test_mixing():
    regular, redistributed = jnp.array([1.0, 2.0]), jnp.array([5.0, -2.0])
    np.testing.assert_array_equal(mix_advantages(regular, redistributed, 0.25), [2.0, 1.0])
    np.testing.assert_array_equal(mix_advantages(regular, redistributed, 0.0), regular)
    np.testing.assert_array_equal(mix_advantages(regular, redistributed, 1.0), redistributed)


@pytest.mark.usefixtures("users_view")
def test_refusals():
    with refused("compensation", "'lst'", "Did you mean 'last'?"):
        redistribute(PREDICTIONS, REWARDS, compensation="lst")
    with refused("predictions", "(3,)", "(4,)"):
        redistribute(PREDICTIONS[:3], REWARDS)
    with refused("jax.vmap"):
        redistribute(PREDICTIONS[None], REWARDS[None])


class TestStream:
    """Two steps of a sequence that had begun, a step to start again, and two of the next, which goes on."""

    G, R = jnp.array([4.0, 5.0, np.nan, 3.0, 2.0]), jnp.array([1.0, 2.0, np.nan, 5.0, 6.0])
    VALID = jnp.array([True, True, False, True, True])
    MARKS = mark_sequences(VALID, jnp.array([False, True, False, False, False]), jnp.asarray(3), 10)

    def redistributed(self, compensation):
        before = jnp.asarray(3.5), jnp.asarray(0.25)
        return redistribute_stream(self.G, self.R, self.MARKS, self.VALID, *before, compensation)

    def test_hand_numbers(self):
        """The first sequence lacked 0.25 and gets 0.5 + 1 for 1 + 2; the second gets 3 − 1 for 5 + 6 so far."""
        rewards, missing = self.redistributed("last")
        np.testing.assert_allclose(rewards, [0.5, 1.0 + 1.75, 0.0, 3.0, -1.0])
        np.testing.assert_allclose(missing, 9.0)
        rewards, missing = self.redistributed("none")
        np.testing.assert_allclose(rewards, [0.5, 1.0, 0.0, 3.0, -1.0])

    @pytest.mark.usefixtures("users_view")
    def test_what_was_given_cannot_be_spread(self):
        with refused("compensation in a stream", "'spread'", "last, none"):
            self.redistributed("spread")
