"""The replay buffer: first in, first out; only what was stored is drawn."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from paircredit.envs import make_environment
from paircredit.envs.key_to_door import KeyToDoorConfig
from paircredit.methods.replay import EpisodeBuffer, Episodes
from paircredit.types import Trajectory

ENV = make_environment("probe-delay")
insert = jax.jit(lambda replay, new: replay.insert(new))
sample = jax.jit(lambda replay, key, count: replay.sample(key, count), static_argnums=2)


def episodes(*numbers: int) -> Episodes:
    """Episodes that can be told apart, in every field."""
    n = np.asarray(numbers)
    steps = np.arange(2)
    return Episodes(
        observations=jnp.asarray(10 * n[:, None] + steps, dtype=jnp.int32),
        actions=jnp.asarray(n[:, None] % 2 + 0 * steps, dtype=jnp.int32),
        valid=jnp.asarray(steps < 1 + n[:, None] % 2),
        returns=jnp.asarray(n, dtype=float),
    )


def stored(replay: EpisodeBuffer) -> list[int]:
    return sorted(int(x) for x in replay.episodes.returns)


def test_the_oldest_make_room_also_across_the_end():
    """Room for five, three at a time: the ring wraps in the middle of a batch."""
    replay = EpisodeBuffer.empty(ENV, 5)
    for batch, expected in (
        ((1, 2, 3), [0, 0, 1, 2, 3]),
        ((4, 5, 6), [2, 3, 4, 5, 6]),
        ((7, 8, 9), [5, 6, 7, 8, 9]),
        ((10, 11, 12), [8, 9, 10, 11, 12]),
    ):
        replay = insert(replay, episodes(*batch))
        assert stored(replay) == expected
    assert replay.stored == 12 and replay.capacity == 5


def test_a_batch_as_large_as_the_buffer_replaces_everything():
    replay = insert(insert(EpisodeBuffer.empty(ENV, 3), episodes(1, 2, 3)), episodes(4, 5, 6))
    assert stored(replay) == [4, 5, 6]


def test_what_belongs_together_stays_together():
    replay = insert(insert(EpisodeBuffer.empty(ENV, 5), episodes(1, 2, 3)), episodes(4, 5, 6))
    drawn = sample(replay, jax.random.key(0), 50)
    expected = episodes(*(int(x) for x in drawn.returns))
    for a, b in zip(jax.tree.leaves(drawn), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(a, b)


def test_only_stored_episodes_are_drawn_all_of_them_equally_often():
    replay, draws = insert(EpisodeBuffer.empty(ENV, 100), episodes(1, 2, 3)), 3000
    found, counts = np.unique(sample(replay, jax.random.key(0), draws).returns, return_counts=True)
    np.testing.assert_array_equal(found, [1, 2, 3])
    assert (np.abs(counts - 1000) < 5 * np.sqrt(draws * 1 / 3 * 2 / 3)).all()
    full = insert(insert(EpisodeBuffer.empty(ENV, 4), episodes(1, 2, 3)), episodes(4, 5, 6))
    np.testing.assert_array_equal(np.unique(sample(full, jax.random.key(1), 100).returns), [3, 4, 5, 6])


def test_pictures_stay_bytes():
    env = KeyToDoorConfig(key_steps=2, apple_steps=3, door_steps=2).build()
    replay = jax.eval_shape(lambda: EpisodeBuffer.empty(env, 9))
    pixels = replay.episodes.observations.pixels
    assert pixels.dtype == jnp.uint8 and pixels.shape == (9, 7, 7, 11, 3)
    assert replay.episodes.observations.flags.shape == (9, 7, 1)


def test_episodes_of_a_rollout_have_their_undiscounted_return():
    valid = jnp.array([[True, True, True], [True, False, False]])
    rollout = Trajectory(
        observations=jnp.arange(8, dtype=jnp.int32).reshape(2, 4),
        legal=jnp.ones((2, 3, 2), dtype=bool),
        actions=jnp.array([[0, 1, 0], [1, 0, 0]]),
        rewards=jnp.array([[1.0, 2.0, 4.0], [8.0, np.nan, np.inf]]),
        terminated=jnp.array([[False, False, True], [True, False, False]]),
        truncated=jnp.zeros((2, 3), dtype=bool),
        valid=valid,
    )
    found = Episodes.of(rollout)
    np.testing.assert_array_equal(found.returns, [7.0, 8.0])
    np.testing.assert_array_equal(found.observations, [[0, 1, 2], [4, 5, 6]])
    np.testing.assert_array_equal(found.valid, valid)
