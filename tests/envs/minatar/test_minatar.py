"""MinAtar's games as environments: their shape, their chance, what is refused, and that methods train on them."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.cli import main
from paircredit.envs import Pixels, make_environment
from paircredit.envs.minatar import GAMES
from paircredit.envs.minatar.game import uniform_int
from paircredit.methods import make_method
from paircredit.networks import NetworkSpec
from paircredit.training import Plan
from paircredit.training.loop import run_chunk, start_members
from paircredit.training.members import member_keys, stack_members
from tests.sentences import refused

TINY = NetworkSpec(shared=True, filters=(2, 2), picture_width=6, trunk=(6, 5), pair_width=8, precision="float32")
CHANNELS = {"asterix": 4, "breakout": 4, "freeway": 7, "seaquest": 10, "space_invaders": 6}
ACTIONS = {"asterix": 5, "breakout": 3, "freeway": 3, "seaquest": 6, "space_invaders": 4}


@pytest.mark.parametrize("game", GAMES)
def test_the_shape_of_a_game(game):
    env = make_environment(f"minatar/{game}", steps=7)
    assert env.spec.name == f"minatar/{game}" and env.spec.num_actions == ACTIONS[game]
    assert env.spec.observation == Pixels(10, 10, CHANNELS[game], 0)
    assert env.spec.horizon == 7 and not env.spec.whole_episodes
    key = jax.random.key(0)
    (state, first) = begun = jax.jit(env.reset)(key)
    following = jax.eval_shape(env.step, key, state, jnp.asarray(1))
    assert jax.tree.structure(begun) == jax.tree.structure(following)
    for before, later in zip(jax.tree.leaves(begun), jax.tree.leaves(following), strict=True):
        assert (before.shape, before.dtype) == (later.shape, later.dtype)
    assert set(np.unique(first.observation.pixels).tolist()) == {0, 255}
    assert first.legal.shape == (ACTIONS[game],) and first.legal.all()


@pytest.mark.parametrize("sticky, places", [(1.0, {4}), (0.0, {3})])
def test_sticky_actions_repeat_the_last_one(sticky, places):
    """The paddle of Breakout begins in column 4; before the first action there was none."""
    env = make_environment("minatar/breakout", sticky_action_probability=sticky)
    keys = jax.random.split(jax.random.key(0), 20)
    state, _ = env.reset(keys[0])
    _, after = jax.jit(jax.vmap(env.step, (0, None, None)))(keys, state, jnp.asarray(1))
    assert set(np.argmax(after.observation.pixels[:, 9, :, 0], axis=1).tolist()) == places


def test_one_action_in_ten_sticks():
    env = make_environment("minatar/breakout")
    keys = jax.random.split(jax.random.key(1), 20_000)
    state, _ = env.reset(keys[0])
    after, _ = jax.jit(jax.vmap(env.step, (0, None, None)))(keys, state, jnp.asarray(2))
    np.testing.assert_array_equal(np.unique(after.last_action), [0, 3])  # as the original numbers them
    assert np.mean(after.last_action == 0) == pytest.approx(0.1, abs=4 * 0.3 / 20_000**0.5)


def test_episodes_begin_by_chance():
    env = make_environment("minatar/breakout")
    _, first = jax.vmap(env.reset)(jax.random.split(jax.random.key(2), 2_000))
    left = np.mean(np.argmax(first.observation.pixels[:, 3, :, 1], axis=1) == 0)
    assert left == pytest.approx(0.5, abs=4 * 0.5 / 2_000**0.5)


@pytest.mark.parametrize("count", [1, 2, 5, 8])
def test_whole_numbers_are_equally_likely(count):
    parts = jnp.linspace(0, 1, 40 * count, endpoint=False)
    numbers = uniform_int(parts + 1 / (80 * count), count)
    np.testing.assert_array_equal(np.bincount(numbers), [40] * count)
    assert uniform_int(jnp.asarray(1.0), count) == count - 1, "should rounding ever make it 1"


@pytest.mark.parametrize("game", ["asterix", "seaquest"])
def test_games_run_in_double_precision(game, x64):
    env = make_environment(f"minatar/{game}")
    key = jax.random.key(0)
    state, first = jax.eval_shape(env.reset, key)
    following, after = jax.eval_shape(env.step, key, state, jnp.asarray(4))
    assert after.reward.dtype == first.reward.dtype == jnp.float64
    assert [x.dtype for x in jax.tree.leaves(state)] == [x.dtype for x in jax.tree.leaves(following)]


@pytest.mark.parametrize("name", [pytest.param("a2c", marks=pytest.mark.nightly), "meta-pwtd"])
def test_methods_train_on_a_game(name):
    method = make_method(name, "default", "minatar/breakout", network=TINY)
    assert make_method(name, "default", "minatar/breakout").network.shared
    assert method.inner.optimiser == "rmsprop" and method.inner.episodes == 16
    method = dataclasses.replace(method, inner=dataclasses.replace(method.inner, episodes=2))
    envs = [make_environment("minatar/breakout", sticky_action_probability=chance, steps=6) for chance in (0.0, 0.2)]
    methods, games, plan = stack_members([method] * 2), stack_members(envs), Plan(updates=2)
    state = start_members(methods, games, plan, member_keys([0, 1]))
    before = jax.device_get(state.learner)
    state, summaries = run_chunk(methods, games, plan, state)
    assert before.value is None, "policy and value are one network"
    for part in ("policy", "weights") if name == "meta-pwtd" else ("policy",):
        old, new = (jax.tree.leaves(getattr(learner, part).parameters) for learner in (before, state.learner))
        assert all(np.isfinite(leaf).all() for leaf in new)
        for member in range(2):
            assert any((a[member] != b[member]).any() for a, b in zip(old, new, strict=True)), part
    assert np.isfinite(summaries["episode_return"]).all()


def test_the_papers_numbers():
    method = make_method("meta-pwtd", "paper", "minatar/asterix")
    inner, outer = method.inner, method.outer
    assert (inner.learning_rate, inner.second_moment_decay, inner.epsilon, inner.clip_norm) == (7e-4, 0.99, 1e-5, 0.5)
    assert (inner.discount, inner.entropy_cost, inner.standardise) == (0.99, 0.01, True)
    assert (outer.learning_rate, outer.clip_norm, outer.entropy_cost) == (3e-5, 0.05, 0.01)
    assert make_method("a2c", "paper", "minatar/asterix").rule.lambda_ == 0.95


def test_bad_settings_are_refused(users_view):
    with refused("sticky_action_probability is 1.5", "between 0 and 1"):
        make_environment("minatar/freeway", sticky_action_probability=1.5)
    with refused("steps is 0"):
        make_environment("minatar/freeway", steps=0)
    with refused("steps is 2147483648", "2,147,483,647"):
        make_environment("minatar/freeway", steps=2**31)
    with refused("MinAtar game", "'pong'", "space_invaders"):
        make_environment("minatar/freeway", game="pong")


def test_games_are_listed(capsys):
    assert main(["list"]) == 0
    out = capsys.readouterr().out
    assert all(f"minatar/{game}" in out for game in GAMES)
