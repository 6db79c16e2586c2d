"""Segments of a stream of episodes: pair weights as if every episode had been given by itself, and credit by hand."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.estimators import lambda_advantages, pairwise_sum, td_errors
from paircredit.methods import InnerLoop
from paircredit.networks import NetworkSpec
from paircredit.types import Trajectory, episode_numbers
from paircredit.weights import PairInputs, PairNetwork
from paircredit.weights.pairs import PairParameters, dense_pair_logits
from paircredit.weights.pairs.tiled import tiled_pair_logits

STEPS, CHANNELS = 9, 3
ENDS = np.array([0, 0, 1, 0, 0, 1, 0, 0, 1], dtype=bool)
"""A game over after step 2 (step 3 starts again), a life lost after step 5, and the end of the segment."""
VALID = np.arange(STEPS) != 3
SEGMENTS = ((0, 3), (4, 6), (6, 9))


def problem(seed: int = 0) -> PairParameters:
    rng = np.random.default_rng(seed)
    sizes = [(STEPS, CHANNELS)] * 3 + [(CHANNELS,)] * 3
    return PairParameters(*(jnp.asarray(1 + 0.5 * rng.normal(size=size), dtype=float) for size in sizes))


def segment_of(p: PairParameters, begin: int, end: int) -> PairParameters:
    return PairParameters(p.rows[begin:end], p.columns[begin:end], p.lags[: end - begin], p.scale, p.shift, p.out)


def apart(p: PairParameters) -> jax.Array:
    """The segments one by one, put where they lie in the whole."""
    z = jnp.zeros((STEPS, STEPS), dtype=float)
    for begin, end in SEGMENTS:
        own = dense_pair_logits(segment_of(p, begin, end), jnp.ones((end - begin,), dtype=bool))
        z = z.at[begin:end, begin:end].set(own)
    return z


def together(p: PairParameters) -> jax.Array:
    return dense_pair_logits(p, jnp.asarray(VALID), episode_numbers(jnp.asarray(ENDS)))


def test_episodes_are_numbered_by_the_ends_before_them():
    assert episode_numbers(jnp.asarray(ENDS)).tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_a_segment_with_two_ends_is_three_segments(x64):
    received = np.random.default_rng(1).normal(size=(STEPS, STEPS))
    for function in (apart, together):
        logits, pull = jax.vjp(jax.jit(function), problem())
        if function is apart:
            expected = logits, pull(jnp.asarray(received))[0]
    assert np.count_nonzero(logits) == 6 + 3 + 6
    np.testing.assert_allclose(logits, expected[0], rtol=1e-12, atol=1e-12)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10), pull(received)[0], expected[1])


def test_one_episode_is_what_the_tiles_say(x64):
    valid = jnp.arange(STEPS) < 7
    found = jax.jit(dense_pair_logits)(problem(), valid, jnp.zeros((STEPS,), dtype=int))
    np.testing.assert_allclose(found, jax.jit(tiled_pair_logits)(problem(), valid), rtol=1e-12, atol=1e-12)


def test_the_network_weighs_every_episode_by_itself(x64):
    spec = NetworkSpec(trunk=(4, 5), pair_width=8, lag="sinusoidal", backend="dense")

    @jax.jit
    def generic(key):
        network = PairNetwork.random(key, STEPS, spec, sees_signal=True)
        return jax.tree.map(lambda x: x + 0.3 * jax.random.normal(jax.random.key(x.size), x.shape), network)

    made = generic(jax.random.key(0))
    network = jax.jit(lambda inputs: made(inputs))
    rng = np.random.default_rng(2)
    features = jnp.asarray(np.abs(rng.normal(size=(STEPS + 1, 5))))
    signal = jnp.asarray(rng.normal(size=STEPS))
    numbers = episode_numbers(jnp.asarray(ENDS))
    found = network(PairInputs(None, features, signal, jnp.asarray(VALID), numbers))
    for begin, end in SEGMENTS:
        count = end - begin
        shifted = PairInputs(
            None, jnp.roll(features, -begin, axis=0), jnp.roll(signal, -begin), jnp.arange(STEPS) < count
        )
        upper = np.triu_indices(count)
        np.testing.assert_allclose(found[begin:end, begin:end][upper], network(shifted)[upper], rtol=1e-12)


class TestCreditByHand:
    """γ = ½, values 10, 20, …: step 1 ends by `end`, step 2 starts again where the environment needs it."""

    REWARDS = (1.0, 2.0, 0.0, 4.0)
    VALUES = (10.0, 20.0, 30.0, 40.0, 50.0)

    def segment(self, terminated: int | None, truncated: tuple[int, ...], starts_again: bool) -> Trajectory:
        steps = np.arange(4)
        ends = np.isin(steps, [terminated, *truncated])
        return Trajectory(
            observations=jnp.zeros((1, 5), dtype=int),
            legal=jnp.ones((1, 4, 2), dtype=bool),
            actions=jnp.zeros((1, 4), dtype=int),
            rewards=jnp.asarray([self.REWARDS]),
            terminated=jnp.asarray([steps == terminated]),
            truncated=jnp.asarray([np.isin(steps, truncated)]),
            valid=jnp.asarray([~((steps == 2) & starts_again)]),
            episode=episode_numbers(jnp.asarray([ends])),
        )

    CASES = (
        # a life is lost: nothing follows step 1, and the game goes on with step 2
        (1, (3,), False, [1 + 10 - 10, 2 - 20, 0 + 20 - 30, 4 + 25 - 40]),
        # game over: the same, but nothing is done in step 2
        (1, (3,), True, [1 + 10 - 10, 2 - 20, 0, 4 + 25 - 40]),
        # time is up: the value of the final observation follows step 1
        (None, (1, 3), True, [1 + 10 - 10, 2 + 15 - 20, 0, 4 + 25 - 40]),
    )

    @pytest.mark.parametrize("terminated, truncated, starts_again, errors", CASES)
    def test_td_errors_and_advantages(self, terminated, truncated, starts_again, errors):
        segment, inner = self.segment(terminated, truncated, starts_again), InnerLoop(discount=0.5)
        values, discounts = jnp.asarray(self.VALUES), inner.discounts(segment)[0]
        found = td_errors(segment.rewards[0], values, discounts, segment.valid[0])
        np.testing.assert_allclose(found, errors)
        advantages = lambda_advantages(segment.rewards[0], values, discounts, 0.5, segment.valid[0])
        later = errors[2] + 0.25 * errors[3] if not starts_again else 0.0
        np.testing.assert_allclose(advantages, [errors[0] + 0.25 * errors[1], errors[1], later, errors[3]])

    @pytest.mark.parametrize("terminated, truncated, starts_again, errors", CASES)
    def test_weighted_sums_and_value_targets_stay_within_an_episode(self, terminated, truncated, starts_again, errors):
        segment, inner = self.segment(terminated, truncated, starts_again), InnerLoop(discount=0.5)
        sums = pairwise_sum(jnp.ones((4, 4)), jnp.asarray(errors, dtype=float), segment.valid[0], segment.episode[0])
        after = 0.0 if starts_again else errors[2] + errors[3]
        np.testing.assert_allclose(sums, [errors[0] + errors[1], errors[1], after, errors[3]])
        after = 0.0 if terminated is not None else 0.5 * 30
        last = 4 + 0.5 * 50
        targets = inner.regular_returns(jnp.asarray([self.VALUES]), segment)[0]
        third = 0.0 if starts_again else 0.5 * last
        np.testing.assert_allclose(targets, [1 + 0.5 * (2 + after), 2 + after, third, last])
