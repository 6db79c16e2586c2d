"""The umbrella MDP: one decision, noise, one reward."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.envs import Discrete
from paircredit.envs.umbrella import UmbrellaConfig
from paircredit.methods import InnerLoop, make_method
from paircredit.training import collect_episodes
from paircredit.training.members import stack_members
from tests.sentences import refused

KEY = jax.random.key(0)


def play(env, action, key=KEY):
    """Observations, rewards, ends and legal second actions of one day."""
    state, now = env.reset(key)
    seen, rewards, ends, choices = [int(now.observation)], [], [], [bool(now.legal[1])]
    for step_key in jax.random.split(key, int(env.length)):
        state, now = env.step(step_key, state, jnp.asarray(action))
        seen.append(int(now.observation))
        rewards.append(float(now.reward))
        ends.append(bool(now.terminated))
        choices.append(bool(now.legal[1]))
        assert now.legal[0] and not now.truncated
        action = 0  # the only one from now on
    return seen, rewards, ends, choices


@pytest.mark.parametrize("action, final", [(0, -3.0), (1, 3.0)])
@pytest.mark.parametrize("horizon", [0, 6])
def test_a_day_without_noise(action, final, horizon):
    env = UmbrellaConfig(length=4, mean=0.5, variance=0.0, reward=3.0, horizon=horizon).build()
    seen, rewards, ends, choices = play(env, action)
    assert seen == [0, 1 + action, 3 + action, 5 + action, 2 * (horizon or 4) - 1]
    assert rewards == [0.5, 0.5, 0.5, final]
    assert ends == [False, False, False, True]
    assert choices == [True, False, False, False, False]


def test_a_day_of_one_step_pays_at_once():
    env = UmbrellaConfig(length=1, reward=2.0).build()
    assert play(env, 1)[:3] == ([0, 1], [2.0], [True])


def test_spec():
    spec = UmbrellaConfig(length=4, horizon=7).build().spec
    assert (spec.num_actions, spec.observation, spec.horizon) == (2, Discrete(14), 7)


@pytest.fixture(scope="module")
def many_days():
    """4000 days of 5 steps with noise of mean 2 and variance 9."""
    env = UmbrellaConfig(length=5, mean=2.0, variance=9.0).build()
    method = make_method("a2c", inner=InnerLoop(episodes=4000))
    learner = method.init(KEY, env)
    return jax.device_get(jax.jit(lambda key: collect_episodes(method, learner, env, key))(KEY))


def test_noise_has_the_given_mean_and_variance(many_days):
    noise = many_days.rewards[:, :4]
    assert abs(noise.mean() - 2) < 5 * 3 / np.sqrt(noise.size)
    assert abs(noise.var() - 9) < 5 * 9 * np.sqrt(2 / noise.size)


def test_noise_is_independent_from_step_to_step_and_of_the_decision(many_days):
    noise, decision = many_days.rewards[:, :4], many_days.actions[:, 0]
    correlations = np.corrcoef(np.column_stack([noise, decision]), rowvar=False)
    assert np.abs(correlations - np.eye(5)).max() < 5 / np.sqrt(4000)


def test_the_last_reward_is_the_decision(many_days):
    np.testing.assert_array_equal(many_days.rewards[:, 4], 2.0 * many_days.actions[:, 0] - 1)


@pytest.mark.parametrize("horizon", [0, 7])
def test_the_model_is_what_step_does(horizon):
    """Exactly, where there is no noise: all states of a day, both actions (at night only one is legal)."""
    env = UmbrellaConfig(length=4, mean=0.5, variance=0.0, reward=3.0, horizon=horizon).build()
    model, end = env.model(), 2 * (horizon or 4) - 1
    for time in range(4):
        for chosen in (0, 1) if time else (0,):
            state = 0 if time == 0 else 2 * time - 1 + chosen
            for action in (0, 1):
                _, out = env.step(KEY, (jnp.asarray(time), jnp.asarray(chosen)), jnp.asarray(action))
                assert model.next_state[state, action] == out.observation
                assert model.reward_mean[state, action] == out.reward
                assert (model.next_state[state, action] == end) == out.terminated
                np.testing.assert_array_equal(model.legal[int(out.observation)], out.legal)
    assert (model.next_state[end] == end).all()
    assert not model.reward_mean[end].any() and not model.reward_variance.any()
    assert model.start == 0 and model.horizon == (horizon or 4)


def test_the_model_knows_mean_and_variance_of_noisy_steps(many_days):
    model = UmbrellaConfig(length=5, mean=2.0, variance=9.0).build().model()
    for t in range(5):
        for state in np.unique(many_days.observations[:, t]):
            here = many_days.observations[:, t] == state
            for action in np.unique(many_days.actions[here, t]):
                rewards = many_days.rewards[here & (many_days.actions[:, t] == action), t]
                mean, variance = model.reward_mean[state, action], model.reward_variance[state, action]
                assert abs(rewards.mean() - mean) <= 5 * np.sqrt(variance / len(rewards))
                assert abs(rewards.var() - variance) <= 5 * variance * np.sqrt(2 / len(rewards))


def test_the_model_can_be_had_in_float64(x64):
    model = UmbrellaConfig(length=4).build().model()
    assert model.reward_mean.dtype == jnp.float64


def test_days_of_different_length_share_a_program():
    lengths = (1, 3, 6)
    envs = stack_members([UmbrellaConfig(length=n, variance=0.0, horizon=6).build() for n in lengths])
    method = make_method("a2c", inner=InnerLoop(episodes=4))
    learner = method.init(KEY, UmbrellaConfig(length=6).build())
    collect = jax.jit(jax.vmap(lambda env: collect_episodes(method, learner, env, KEY)))
    days = jax.device_get(collect(envs))
    for i, n in enumerate(lengths):
        np.testing.assert_array_equal(days.valid[i], np.broadcast_to(np.arange(6) < n, (4, 6)))
        np.testing.assert_array_equal(np.nonzero(days.terminated[i])[1], [n - 1] * 4)
        assert (days.observations[i, :, n:] == 11).all() and (days.observations[i, :, :n] < 11).all()
        np.testing.assert_array_equal(np.abs(days.rewards[i]), np.broadcast_to(np.arange(6) == n - 1, (4, 6)))


@pytest.mark.parametrize(
    "settings, mentions",
    [
        ({"length": 0}, ("length 0", "at least 1")),
        ({"length": 5, "horizon": 4}, ("length 5", "horizon 4")),
        ({"length": 5, "horizon": -1}, ("horizon -1",)),
        ({"variance": -1.0}, ("variance is -1.0", "at least 0")),
        ({"variance": float("inf")}, ("variance is inf", "finite")),
        ({"mean": float("nan")}, ("mean is nan", "finite")),
        ({"reward": float("inf")}, ("reward is inf", "finite")),
    ],
)
def test_impossible_days_are_refused(settings, mentions):
    with refused(*mentions):
        UmbrellaConfig(**settings).build()
