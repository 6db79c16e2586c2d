"""Key-to-Door played by rule: sampled episodes against exact answers."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.envs.key_to_door import DOOR, DOOR_PHASE, KEY_PHASE, MIDDLE, KeyToDoorConfig, phase_rewards
from paircredit.envs.key_to_door_players import (
    LONGEST_SWEEP,
    best_door_rate,
    best_key_rate,
    hitting_probability,
    max_expected_return,
    mean_apples,
    optimal_player,
    play,
    random_apples,
    random_expected_return,
    random_player,
    room_floor,
)
from paircredit.types import PixelObservation, Trajectory, check_trajectory

pytestmark = pytest.mark.usefixtures("real_compilation")  # 10,000 episodes run longer than they compile
KEY = jax.random.key(0)
EPISODES = 10_000

play_well = jax.jit(lambda env, key: phase_rewards(play(env, optimal_player, key, EPISODES), env))
play_at_random = jax.jit(lambda env, key: phase_rewards(play(env, random_player, key, EPISODES), env))


@jax.jit
def apples_in_store(env):
    """How many apples there are in the episodes that `play` plays with the same key."""
    keys = jax.random.split(jax.random.split(KEY)[0], EPISODES)
    return jax.vmap(lambda key: env.reset(key)[0].apples.sum())(keys)


def assert_mean(numbers, expected):
    """The sample mean is within four standard errors of what it should be."""
    numbers = np.asarray(numbers, float)
    assert abs(numbers.mean() - expected) <= 4 * numbers.std() / np.sqrt(numbers.size) + 1e-6


@pytest.mark.parametrize("mean, variance", [(1.0, 0.0), (5.0, 25.0), (5.0, 100.0), (10.0, 100.0), (1.0, 100.0)])
def test_optimal_play_is_paid_what_can_be_had(mean, variance):
    """10 for the door and μ for each of 10 apples; the variance of the return is E[N] σ² + Var[N] μ²."""
    env = KeyToDoorConfig(mean=mean, variance=variance).build()
    assert max_expected_return(env) == pytest.approx(10 + 10 * mean)
    paid = jax.device_get(play_well(env, KEY))
    assert_mean(paid["episode_return"], 10 + 10 * mean)
    assert (paid["key_rate"] == 1).all() and (paid["door_reward"] == 10).all()
    assert_mean((paid["apple_reward"] - 10 * mean) ** 2, 10 * variance + 30 * mean**2)
    if variance == 0:
        np.testing.assert_allclose(paid["apple_reward"], mean * np.asarray(apples_in_store(env)))


@pytest.mark.parametrize("layout", ["open", "walled"])
def test_optimal_play_misses_nothing_in_the_shortest_phases(layout):
    env = KeyToDoorConfig(
        mean=1.0,
        variance=0.0,
        layout=layout,
        key_steps=8,
        apple_steps=LONGEST_SWEEP,
        door_steps=2,
        fewest_apples=1,
        most_apples=44,
    ).build()
    paid = jax.device_get(play_well(env, KEY))
    assert (paid["key_rate"] == 1).all() and (paid["door_reward"] == 10).all()
    np.testing.assert_allclose(paid["apple_reward"], apples_in_store(env))
    assert max_expected_return(env) == 10 + 22.5


def test_optimal_play_takes_the_shortest_way_to_the_key():
    """In 4 steps only near keys can be reached, and all of them are."""
    env = KeyToDoorConfig(layout="walled", key_steps=4, apple_steps=1).build()
    assert 0.4 < best_key_rate(env) < 0.8
    assert_mean(play_well(env, KEY)["key_rate"], best_key_rate(env))


@pytest.mark.parametrize("layout", ["open", "walled"])
def test_optimal_play_goes_on_after_slips(layout):
    env = KeyToDoorConfig(mean=1.0, variance=0.0, slip=0.1, layout=layout).build()
    paid = jax.device_get(play_well(env, KEY))
    bound = max_expected_return(env)
    assert 19.99 < bound < 20
    assert np.mean(paid["key_rate"]) > 0.999 and np.mean(paid["door_reward"]) > 9.99
    assert np.mean(paid["apple_reward"] == np.asarray(apples_in_store(env))) > 0.999


@pytest.fixture(scope="module", params=["open", "walled"])
def random_play(request):
    env = KeyToDoorConfig(layout=request.param).build()
    return env, jax.device_get(play_at_random(env, KEY))


def test_random_play_finds_the_key_as_often_as_computed(random_play):
    env, paid = random_play
    assert_mean(paid["key_rate"], best_key_rate(env, slip=1.0))
    assert best_key_rate(env, slip=1.0) == pytest.approx({"open": 0.28278, "walled": 0.10279}[env.layout], abs=1e-5)


def test_random_play_opens_the_door_as_often_as_computed(random_play):
    env, paid = random_play
    with_key = paid["key_rate"] == 1
    assert not paid["door_reward"][~with_key].any()
    assert_mean(paid["door_reward"][with_key] / 10, best_door_rate(env, slip=1.0))
    assert best_door_rate(env, slip=1.0) == pytest.approx(0.27385, abs=1e-5)


def test_random_play_eats_as_many_apples_as_computed(random_play):
    env, paid = random_play
    assert_mean(paid["apple_reward"] / 5, random_apples(env))
    assert random_apples(env) == pytest.approx(5.66253, abs=1e-5)
    assert_mean(paid["episode_return"], random_expected_return(env))


def test_random_play_does_not_mind_slips():
    calm, slippery = (KeyToDoorConfig(slip=slip).build() for slip in (0.0, 0.7))
    assert random_expected_return(calm) == random_expected_return(slippery)
    assert_mean(play_at_random(slippery, KEY)["key_rate"], best_key_rate(calm, slip=1.0))


def test_hitting_probabilities_by_enumeration():
    """Every sequence of six actions from the middle of the door room."""
    floor = room_floor(KeyToDoorConfig().build(), DOOR_PHASE)
    floor[DOOR] = True
    hits = 0
    for moves in itertools.product([(-1, 0), (1, 0), (0, -1), (0, 1)], repeat=6):
        row, column = MIDDLE
        for down, right in moves:
            if (row, column) != DOOR and floor[row + down, column + right]:
                row, column = row + down, column + right
        hits += (row, column) == DOOR
    assert hitting_probability(floor, DOOR, 6, slip=1.0)[MIDDLE] == pytest.approx(hits / 4**6)


def test_hitting_probabilities_by_hand():
    env = KeyToDoorConfig().build()
    floor = room_floor(env, KEY_PHASE)
    assert floor.sum() == 25
    beside, corner = (3, 4), (1, 3)
    for slip, chance in ((0.0, 1.0), (1.0, 0.25), (0.4, 0.7)):
        assert hitting_probability(floor, (3, 5), 1, slip)[beside] == pytest.approx(chance)
    far = hitting_probability(floor, (5, 7), 7, 0.0)
    assert far[corner] == 0 and far[1, 4] == 1, "eight steps are one too many"
    assert best_door_rate(KeyToDoorConfig(door_steps=1).build()) == 0
    assert best_door_rate(KeyToDoorConfig(door_steps=2).build(), slip=1.0) == 1 / 16


def test_mean_apples_and_a_door_that_costs():
    env = KeyToDoorConfig(fewest_apples=2, most_apples=7, door_reward=-4.0).build()
    assert mean_apples(env) == 4.5
    assert max_expected_return(env) == 22.5, "one need not open it"


def test_a_batch_of_played_episodes_is_a_trajectory():
    env = KeyToDoorConfig(key_steps=3, apple_steps=4, door_steps=2).build()
    batch = jax.jit(lambda key: play(env, optimal_player, key, 5))(KEY)
    check_trajectory(batch)
    assert batch.observations.pixels.shape == (5, 10, 7, 11, 3) and batch.observations.flags.shape == (5, 10, 1)
    assert batch.actions.shape == batch.rewards.shape == (5, 9) and batch.legal.shape == (5, 9, 4)
    assert batch.valid.all() and not batch.truncated.any()
    np.testing.assert_array_equal(batch.terminated, np.broadcast_to(np.arange(9) == 8, (5, 9)))
    keys = jax.random.split(jax.random.split(KEY)[0], 5)
    first = jax.jit(jax.vmap(lambda key: env.reset(key)[1].observation.pixels))(keys)
    np.testing.assert_array_equal(batch.observations.pixels[:, 0], first)


def test_phase_rewards_by_hand():
    env = KeyToDoorConfig(key_steps=2, apple_steps=3, door_steps=2).build()
    rewards = jnp.array([[1.0, 2, 4, 8, 16, 32, 64], [0, 0, 5, 0, 5, 0, 0]])
    flags = jnp.array([[0, 1, 1, 1, 1, 1, 1, 1], [0] * 8], dtype=bool)[..., None]
    seen = PixelObservation(jnp.zeros((2, 8, 7, 11, 3), jnp.uint8), flags)
    no = jnp.zeros((2, 7), bool)
    batch = Trajectory(seen, jnp.ones((2, 7, 4), bool), jnp.zeros((2, 7), int), rewards, no, no, ~no)
    split = {name: numbers.tolist() for name, numbers in phase_rewards(batch, env).items()}
    assert split == {
        "episode_return": [127, 10],
        "apple_reward": [28, 10],
        "door_reward": [96, 0],
        "key_rate": [1, 0],
    }
