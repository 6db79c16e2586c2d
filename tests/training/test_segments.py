"""Segments of a stream of episodes: what they look like, that actors live on, and that methods learn from them."""

from __future__ import annotations

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.envs import make_environment
from paircredit.envs.protocol import Discrete, EnvSpec, InSegments
from paircredit.methods import make_method, replace_dotted
from paircredit.training import Plan, train
from paircredit.training.rollout import collect, start_actors, summary_of
from paircredit.types import TimeStep
from tests.rungs import nightly_but
from tests.sentences import refused

STEPS = 7


def method_for(name: str, actors: int):
    return replace_dotted(make_method(name, preset="probe"), {"inner.episodes": actors}, name)


@pytest.fixture(scope="module")
def segments():
    """Two segments in a row of the probe that pays 1 after two steps, with the actors before, between and after."""
    env = InSegments(make_environment("probe-delay"), STEPS)
    method = method_for("a2c", 3)
    learner = method.init(jax.random.key(0), env)

    @jax.jit
    def collected(key):
        first = start_actors(method, learner, env, key)
        one, second = collect(method, learner, env, first, jax.random.key(1))
        two, third = collect(method, learner, env, second, jax.random.key(2))
        return first, one, second, two, third

    return jax.device_get(collected(jax.random.key(3)))


def test_a_segment_holds_episodes_and_the_steps_between_them(segments):
    """Two steps of an episode, one to start again, and so on; the second segment goes on where the first stopped."""
    _, one, _, two, _ = segments
    for segment, shift in ((one, 0), (two, STEPS % 3)):
        place = (np.arange(STEPS) + shift) % 3
        np.testing.assert_array_equal(segment.valid, [place != 2] * 3)
        np.testing.assert_array_equal(segment.observations[:, :-1], [np.array([0, 1, 3])[place]] * 3)
        np.testing.assert_array_equal(segment.rewards, [(place == 1).astype(float)] * 3)
        np.testing.assert_array_equal(segment.terminated, [place == 1] * 3)
        np.testing.assert_array_equal(segment.episode, [(np.arange(STEPS) + shift + 1) // 3 - (shift + 1) // 3] * 3)
    assert one.truncated.nonzero()[1].tolist() == [STEPS - 1] * 3  # an episode goes on after the first segment
    assert not two.truncated.any()  # the second ends with the end of an episode
    np.testing.assert_array_equal(one.observations[:, -1], two.observations[:, 0])


def test_an_episode_that_is_cut_within_a_segment_is_followed_by_another_one():
    """The probe is cut after four steps; a step to start again, and two steps of the next episode."""
    env, method = InSegments(make_environment("probe-truncation"), STEPS), method_for("a2c", 2)
    learner = method.init(jax.random.key(0), env)
    segment, _ = collect(method, learner, env, start_actors(method, learner, env, jax.random.key(1)), jax.random.key(2))
    np.testing.assert_array_equal(segment.valid, [[True] * 4 + [False] + [True] * 2] * 2)
    np.testing.assert_array_equal(segment.truncated, [[False] * 3 + [True] + [False] * 2 + [True]] * 2)
    np.testing.assert_array_equal(segment.episode, [[0] * 4 + [1] * 3] * 2)
    assert not segment.terminated.any()


def test_actors_know_what_their_episodes_were_paid(segments):
    first, _, second, _, third = segments
    assert summary_of(first) == {"episode_return": 0.0, "ended_episodes": 0.0}
    assert summary_of(second) == {"episode_return": 1.0, "ended_episodes": 6.0}
    assert summary_of(third) == {"episode_return": 1.0, "ended_episodes": 15.0}
    assert third.over.all() and not second.over.any() and (third.return_so_far == 0).all()


class TwoLives(eqx.Module):
    """A game of four steps, in which a life is lost after two. Every step scores 7, and 1 is what one learns from."""

    @property
    def spec(self):
        return EnvSpec("two-lives", 2, Discrete(5), 4)

    def reset(self, key):
        del key
        return jnp.zeros((), dtype=jnp.int32), self.seen(jnp.zeros((), dtype=jnp.int32), 0.0)

    def step(self, key, state, action):
        del key, action
        return state + 1, self.seen(state + 1, 1.0)

    def seen(self, time, reward):
        return TimeStep(
            observation=time,
            legal=jnp.ones((2,), dtype=bool),
            reward=jnp.asarray(reward),
            terminated=(time == 2) | (time == 4),
            truncated=jnp.zeros((), dtype=bool),
            over=time == 4,
            score=7.0 * jnp.asarray(reward),
        )


def test_a_lost_life_ends_an_episode_and_a_game_has_the_score_of_all_its_lives():
    env, method = InSegments(TwoLives(), 7), method_for("a2c", 2)
    learner = method.init(jax.random.key(0), env)

    @jax.jit
    def collected(key):
        segment, later = collect(method, learner, env, start_actors(method, learner, env, key), key)
        return segment, later, collect(method, learner, env, later, key)[1]

    segment, later, last = jax.device_get(collected(jax.random.key(1)))
    np.testing.assert_array_equal(segment.observations, [[0, 1, 2, 3, 4, 0, 1, 2]] * 2)
    np.testing.assert_array_equal(segment.terminated, [[0, 1, 0, 1, 0, 0, 1]] * 2)
    np.testing.assert_array_equal(segment.valid, [[1, 1, 1, 1, 0, 1, 1]] * 2)  # nothing lies between two lives
    np.testing.assert_array_equal(segment.rewards, [[1, 1, 1, 1, 0, 1, 1]] * 2)
    np.testing.assert_array_equal(segment.episode, [[0, 0, 1, 1, 2, 2, 2]] * 2)
    assert not segment.truncated.any()
    np.testing.assert_array_equal(later.last_return, [28, 28])
    np.testing.assert_array_equal(later.return_so_far, [14, 14])  # of the game that goes on
    np.testing.assert_array_equal(later.ended, [1, 1])
    assert not later.over.any()
    np.testing.assert_array_equal(last.ended, [3, 3])
    assert summary_of(last) == {"episode_return": 28.0, "ended_episodes": 6.0}


def learned(name: str, probe: str, updates: int):
    env = InSegments(make_environment(f"probe-{probe}"), 5)
    method = method_for(name, 4)
    return train([method] * 2, [env] * 2, [0, 1], Plan(updates=50), updates)


@pytest.mark.parametrize("name", nightly_but(["meta-pwtd"], ["a2c", "meta-pwtd"]))
def test_values_and_actions_are_learned_from_segments(name):
    values = learned(name, "delay", 200).learner.value.parameters.values
    np.testing.assert_allclose(values[:, :2], [[0.9, 1]] * 2, atol=0.02)
    logits = learned(name, "context", 200).learner.policy.parameters.logits
    right = jax.nn.softmax(logits)[:, jnp.arange(2), jnp.arange(2)]
    assert (np.asarray(right) > 0.9).all()


def test_an_episode_that_is_cut_is_worth_what_would_follow():
    """Reward 1 for ever, cut after 4 steps of 5: v = 1 / (1 − γ) = 10 only if both cuts are bootstrapped."""
    values = learned("a2c", "truncation", 600).learner.value.parameters.values
    np.testing.assert_allclose(values[:, 0], [10, 10], rtol=0.03)


def test_resets_need_whole_episodes():
    env = InSegments(make_environment("probe-value"), 4)
    method = make_method("a2c", preset="probe")
    with refused("a2c needs whole episodes", "probe-value", "collected afresh"):
        train([method], [env], [0], dataclasses.replace(Plan(), protocol="reset"), 1)


@pytest.mark.parametrize("probe", ["delay", "truncation"])
@pytest.mark.parametrize("name", ["a2c", "a2c-rr", "meta-pwtd", "meta-lambda"])
def test_no_weight_of_a_credit_connects_two_episodes(name, probe):
    env = InSegments(make_environment(f"probe-{probe}"), STEPS)
    method = method_for(name, 2)

    @jax.jit
    def credit(key):
        learner = method.init(key, env)
        segment, _ = collect(method, learner, env, start_actors(method, learner, env, key), key)
        return segment, method.credit(learner, segment)

    segment, found = jax.device_get(credit(jax.random.key(0)))
    number = np.cumsum(~segment.valid, axis=1)  # between two episodes lies a step that is none of either
    apart = number[:, :, None] != number[:, None, :]
    later = np.triu(np.ones((STEPS, STEPS), dtype=bool))
    assert (apart & later).any() and not found.weights[apart & later].any()
    sums = np.einsum("btk,bk->bt", np.where(later, found.weights, 0), found.signal)
    np.testing.assert_allclose(sums[segment.valid], found.advantages[segment.valid], atol=1e-5)
