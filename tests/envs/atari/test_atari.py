"""Atari: what the emulator is told and says, against its single-game interface, and what learning sees of it."""

from __future__ import annotations

import importlib
import os
import sys
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.envs import environment_config, environments, make_environment
from paircredit.envs.atari import GAMES
from paircredit.envs.atari.environment import Seen
from paircredit.envs.atari.pool import Raw
from paircredit.envs.protocol import Pixels
from paircredit.methods import make_method, replace_dotted
from paircredit.training import Plan, train
from tests.sentences import refused

SUMS = (60113.6, 438092.1, 508895.4)
"""Of what random play and people score in the 49 games, read off the papers."""
TINY = {"inner.episodes": 2, "network.trunk": (8, 8), "network.pair_width": 8}


def steps_of(pool, actions):
    """All that a pool says, one action after another in all its games."""
    for action in actions:
        pool.send(np.asarray(action))
        yield pool.receive()


def single_game(name: str, seed: int):
    """The emulator's interface to one game, frame by frame."""
    ale_py, roms = importlib.import_module("ale_py"), importlib.import_module("ale_py.roms")
    game = ale_py.ALEInterface()
    game.setFloat("repeat_action_probability", 0.0)
    game.setInt("random_seed", seed)
    game.loadROM(roms.get_rom_path(name))
    game.reset_game()
    return game


def test_rewards_lives_and_ends_are_those_of_the_single_game():
    """Until the game is over; then a step that only starts again."""
    env = make_environment("atari/breakout", most_noops=0, fire_at_start=False)
    pool, game, draw = env.open(np.array([7])), single_game("breakout", 7), np.random.default_rng(0)
    pool.reset()
    known, rewards, lost = game.getMinimalActionSet(), 0, 0
    assert env.spec.num_actions == len(known) == 4
    while not game.game_over():
        action, before = int(draw.integers(4)), game.lives()
        reward = sum(game.act(known[action]) for _ in range(4) if not game.game_over())
        (now,) = steps_of(pool, [[action]])
        assert (now.reward[0], now.lives[0], now.terminated[0]) == (reward, game.lives(), game.game_over())
        rewards, lost = rewards + reward, lost + (game.lives() < before)
    assert rewards >= 1 and lost == 5
    (start,) = steps_of(pool, [[1]])
    assert (start.reward[0], start.lives[0], start.terminated[0]) == (0, 5, False)
    assert start.frame.shape == (1, 1, 84, 84) and start.frame.sum() > 0  # of the new game
    pool.close()


def shrunk(screen, size):
    """A picture whose pixels are the means of what they cover."""

    def cover(long):
        edges = np.linspace(0, long, size + 1)
        pixels = np.arange(long)
        parts = np.minimum(edges[1:, None], pixels + 1) - np.maximum(edges[:-1, None], pixels)
        return np.maximum(parts, 0) * size / long

    return cover(screen.shape[0]) @ screen @ cover(screen.shape[1]).T


def test_a_picture_is_the_brighter_of_the_last_two_frames_of_a_step():
    env = make_environment("atari/breakout", most_noops=0, fire_at_start=False)
    pool, game, draw = env.open(np.array([7])), single_game("breakout", 7), np.random.default_rng(0)
    pool.reset()
    known, differ = game.getMinimalActionSet(), 0
    for _ in range(60):
        action, screens = int(draw.integers(4)), []
        for _ in range(4):
            game.act(known[action])
            screens.append(game.getScreenGrayscale().astype(float))
        (now,) = steps_of(pool, [[action]])
        found = now.frame[0, 0].astype(float)
        assert np.abs(found - shrunk(np.maximum(*screens[-2:]), 84)).max() < 1.01  # rounding
        differ += np.abs(found - shrunk(screens[-1], 84)).max() > 2
    assert differ > 10


@pytest.mark.parametrize("stack", [1, 4])
def test_frames_are_stacked_as_the_emulator_stacks_them(monkeypatch, stack):
    """Also where a game is over, and where it is cut: another one begins with one frame."""
    env = make_environment("atari/breakout", size=40, stack=stack, most_frames=700)
    seeds, draw = np.arange(3), np.random.default_rng(0)
    pool, module = env.open(seeds), importlib.import_module("ale_py.vector_env")
    vector = module.AtariVectorEnv
    monkeypatch.setattr(module, "AtariVectorEnv", lambda *a, **given: vector(*a, **given | {"stack_num": stack}))
    theirs = env.open(seeds)
    read, begin = jax.jit(jax.vmap(env.read)), jax.jit(jax.vmap(lambda raw: env.read(None, raw)))
    state, now = begin(pool.reset())
    np.testing.assert_array_equal(np.moveaxis(np.asarray(now.observation.pixels), -1, 1), theirs.reset().frame)
    over, cut = 0, 0
    for _ in range(400):
        actions = draw.integers(4, size=3)
        (ours,), (expected,) = steps_of(pool, [actions]), steps_of(theirs, [actions])
        state, now = read(state, ours)
        np.testing.assert_array_equal(np.moveaxis(np.asarray(now.observation.pixels), -1, 1), expected.frame)
        over, cut = over + int(ours.terminated.sum()), cut + int(ours.truncated.sum())
    assert over > 0 and cut > 0


def test_a_game_that_takes_too_long_is_cut_and_begins_again():
    env = make_environment("atari/breakout", most_noops=0, fire_at_start=False, most_frames=40)
    pool = env.open(np.arange(2))
    pool.reset()
    said = list(steps_of(pool, np.zeros((25, 2), dtype=np.int32)))
    cut = [bool(now.truncated.all()) for now in said]
    (first, second) = np.flatnonzero(cut)
    assert first in (9, 10) and second - first in (10, 11)  # and a step between, in which it begins
    assert not any(now.terminated.any() for now in said)


def test_fire_is_pressed_at_the_start_only_if_asked_for():
    def lives(fire):
        pool = make_environment("atari/breakout", most_noops=0, fire_at_start=fire).open(np.array([3]))
        pool.reset()
        return [int(now.lives[0]) for now in steps_of(pool, np.zeros((150, 1), dtype=np.int32))]

    assert set(lives(fire=False)) == {5}  # no ball comes, and none is lost
    assert lives(fire=True)[-1] == 4  # the second waits for fire


def test_answers_come_in_the_order_of_the_actions():
    """Emulators finish in any order; each of six games follows its own actions."""
    count, steps = 6, 60
    pool = make_environment("atari/breakout", most_noops=0, fire_at_start=False, threads=3).open(np.arange(count))
    games = [single_game("breakout", seed) for seed in range(count)]
    known, draw = games[0].getMinimalActionSet(), np.random.default_rng(1)
    actions = draw.integers(4, size=(steps, count))
    actions[0] = 1  # fire
    pool.reset()
    lives = []
    for chosen, now in zip(actions, steps_of(pool, actions), strict=True):
        for game, action in zip(games, chosen, strict=True):
            for _ in range(4):
                game.act(known[action])
        np.testing.assert_array_equal(now.lives, [game.lives() for game in games])
        lives.append(now.lives)
    assert (np.ptp(lives, axis=1) > 0).any()  # the games went different ways
    pool.close()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere threads have no priority of their own")
def test_emulators_stand_back_and_the_rest_of_the_program_does_not():
    def priorities():
        tasks = [int(name) for name in os.listdir("/proc/self/task")]
        return {task: os.getpriority(os.PRIO_PROCESS, task) for task in tasks}

    env = make_environment("atari/breakout", threads=2, niceness=7)
    before = priorities()
    pool = env.open(np.arange(4))
    pool.reset()
    after = priorities()
    usual = before[threading.get_native_id()]
    assert {after[task] for task in after.keys() - before.keys()} == {max(7, usual)}
    assert {task: after[task] for task in after.keys() & before.keys()} == {
        t: before[t] for t in after.keys() & before.keys()
    }
    pool.close()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere threads have no scheduling class of their own")
def test_emulators_may_run_only_where_nothing_else_wants_the_core():
    def classes():
        return {int(name): os.sched_getscheduler(int(name)) for name in os.listdir("/proc/self/task")}

    before = classes()
    pool = make_environment("atari/breakout", threads=2, niceness=20).open(np.arange(4))
    after = classes()
    assert {after[task] for task in after.keys() - before.keys()} == {os.SCHED_IDLE}
    assert os.SCHED_IDLE not in {after[task] for task in after.keys() & before.keys()}
    pool.close()


def test_answers_do_not_share_memory():
    env = make_environment("atari/pong", most_noops=0)
    pool = env.open(np.arange(2))
    pool.reset()
    one, two = steps_of(pool, [[0, 0]] * 2)
    assert not np.shares_memory(one.frame, two.frame)
    pool.close()


def test_games_begin_with_up_to_thirty_frames_of_nothing():
    pool = make_environment("atari/pong", fire_at_start=False).open(np.arange(8))
    infos = [pool._emulators.reset(seed=8 * i + np.arange(8))[1] for i in range(3)]
    frames = np.concatenate([info["episode_frame_number"] for info in infos])
    assert frames.min() <= 3 and 27 <= frames.max() <= 30
    pool.close()


def test_sticky_actions_are_off_unless_asked_for():
    """The same actions lead to the same game, whatever the seed; with sticky actions they do not."""

    def pictures(**settings):
        pool = make_environment("atari/breakout", most_noops=0, **settings).open(np.arange(3))
        pool.reset()
        frames = [now.frame for now in steps_of(pool, np.tile(np.arange(40)[:, None] % 4, (1, 3)))]
        pool.close()
        return np.stack(frames)

    plain, sticky = pictures(), pictures(sticky_action_probability=0.25)
    assert (plain == plain[:, :1]).all()
    assert not (sticky == sticky[:, :1]).all()


def raw(reward=0, terminated=False, truncated=False, lives=3):
    return Raw(np.zeros((1, 84, 84), np.uint8), np.asarray([reward, terminated, truncated, lives], dtype=np.int32))


@pytest.mark.parametrize(
    ("said", "lives", "ends", "cut", "over"),
    [
        (raw(7), 3, False, False, False),
        (raw(7, lives=2), 3, True, False, False),  # the game goes on
        (raw(7, terminated=True, lives=0), 1, True, False, True),
        (raw(7, truncated=True), 3, False, True, True),
        (raw(7, truncated=True, lives=2), 3, True, False, True),
        (raw(7, lives=4), 3, False, False, False),  # a life was won
    ],
)
def test_what_ends_for_learning_and_what_is_over(said, lives, ends, cut, over):
    env = make_environment("atari/breakout")
    given = jax.tree.map(jnp.asarray, said)
    before = Seen(jnp.asarray(lives, dtype=jnp.int32), jnp.asarray(False), jnp.zeros((84, 84, 3), dtype=jnp.uint8))
    kept, now = env.read(before, given)
    assert (bool(now.terminated), bool(now.truncated), bool(now.over)) == (ends, cut, over)
    assert (float(now.reward), float(now.score), int(kept.lives)) == (1.0, 7.0, int(said.lives))
    plain = make_environment("atari/breakout", end_at_life_loss=False, clip_rewards=False)
    _, now = plain.read(before, given)
    assert bool(now.terminated) == bool(said.terminated) and float(now.reward) == 7.0


def played(rollouts: str, updates: int = 4):
    """A2C with two members, each a group of its own, on small pictures of Breakout, in segments of 60 steps."""
    env = make_environment("atari/breakout", size=40, steps=60, groups=2, rollouts=rollouts)
    method = replace_dotted(make_method("a2c", "small", "atari/breakout"), TINY, "a2c")
    chunks = []
    state = train([method] * 2, [env] * 2, range(2), Plan(updates=updates), updates, on_chunk=chunks.append)
    return jax.device_get((state.learner.policy.parameters, state.trajectory, state.actors)), chunks[-1].summaries


@pytest.mark.nightly
def test_rollouts_within_a_program_are_those_of_the_host():
    (in_graph, seen), (host, also) = played("in-graph"), played("host")
    for ours, theirs in zip(jax.tree.leaves(in_graph), jax.tree.leaves(host), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    for name, values in seen.items():
        np.testing.assert_allclose(values, also[name], rtol=1e-6)
    _, segment, actors = host
    # Four segments of 60 steps are longer than a game: lives and games were lost; steps between games are not valid.
    assert actors.ended.min() >= 1
    assert segment.terminated.any() and set(np.unique(segment.rewards)) <= {-1.0, 0.0, 1.0}
    assert segment.observations.pixels.shape == (2, 2, 61, 40, 40, 4)
    assert (segment.episode.max(axis=-1) >= 1).any()


@pytest.mark.parametrize(
    ("members", "most", "groups"), [(1, 8, 1), (8, 8, 8), (9, 8, 5), (10, 8, 5), (11, 8, 6), (13, 8, 7), (13, 1, 1)]
)
def test_the_largest_group_is_as_small_as_can_be(members, most, groups):
    assert make_environment("atari/breakout", groups=most).groups(members) == groups


@pytest.mark.nightly
def test_a2c_rr_records_the_newest_frames():
    env = make_environment("atari/breakout", size=40, steps=10)
    prediction = {"steps": 16, "capacity": 4, "batch_size": 2, "warm_up": 2, "every": 2, "width": 8, "cells": 4}
    settings = TINY | {f"prediction.{name}": value for name, value in prediction.items()}
    method = replace_dotted(make_method("a2c-rr", "small", "atari/breakout"), settings, "a2c-rr")
    learner = train([method], [env], [0], Plan(updates=4), 4).learner
    kept = learner.own.predictor.state.buffer
    assert kept.frames.pixels.shape == (1, 6, 16, 40, 40, 1) and int(kept.slots.stored[0]) >= 2
    assert (np.asarray(kept.frames.pixels) > 0).any()


@pytest.mark.nightly
def test_meta_pwtd_learns_from_games():
    env = make_environment("atari/pong", size=40, steps=10)
    method = replace_dotted(make_method("meta-pwtd", "small", "atari/pong"), TINY, "meta-pwtd")
    state = train([method], [env], [0], Plan(updates=2), 2)
    fresh = method.init(jax.random.key(1), env)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(jax.device_get(state.learner.weights.parameters)))
    assert jax.tree.structure(fresh.weights) == jax.tree.structure(state.learner.weights)
    assert int(state.learner.weights.state.steps[0]) == 2


def test_what_scores_are_held_against_has_not_changed():
    """The sums of the columns, and some of the rows as the papers print them."""
    np.testing.assert_allclose(np.sum(list(GAMES.values()), axis=0), SUMS, rtol=1e-9)
    assert GAMES["pong"] == (-20.7, 9.3, 14.6) and GAMES["seaquest"] == (68.4, 20181.8, 42054.7)
    assert GAMES["montezuma_revenge"] == (0.0, 4366.7, 4753.3)


def test_the_paper_s_games_are_known_by_name():
    assert len(GAMES) == 49 == len([name for name in environments() if name.startswith("atari/")])
    spec = environment_config("atari/ms_pacman").build().spec
    assert (spec.name, spec.num_actions, spec.horizon, spec.frames_per_step) == ("atari/ms_pacman", 9, 20, 4)
    assert spec.observation == Pixels(84, 84, 4, 0, stacked=4) and not spec.whole_episodes
    assert make_environment("atari/ms_pacman", all_actions=True).spec.num_actions == 18
    # One that is not among the paper's can be named, too.
    assert make_environment("atari/pong", game="pitfall").spec.name == "atari/pitfall"


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"game": "MsPacman"}, "no game called 'MsPacman'"),
        ({"sticky_action_probability": 1.5}, "sticky_action_probability is 1.5, but must lie between 0 and 1"),
        ({"steps": 0}, "steps is 0, but must lie between 1 and 2,147,483,647"),
        ({"groups": 0}, "groups is 0"),
        ({"size": 3}, "size is 3"),
        ({"size": 100_000}, "size is 100000, but must lie between 8 and 1,024"),
        ({"most_frames": 2**31}, "most_frames is 2147483648"),
        ({"frame_skip": 2**31}, "frame_skip is 2147483648"),
        ({"most_noops": 2**31 - 1}, "most_noops is 2147483647"),
        ({"niceness": 21}, "niceness is 21"),
        ({"rollouts": "gpu"}, "kind of rollouts"),
    ],
)
@pytest.mark.usefixtures("users_view")
def test_bad_settings_are_refused(settings, says):
    with refused(says):
        make_environment("atari/pong", **settings)


@pytest.mark.parametrize("missing", ["ale_py.vector_env", "chex"])
def test_without_the_emulator_a_sentence_says_what_to_install(monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    with refused("atari/pong needs the Arcade Learning Environment", "paircredit[atari]"):
        make_environment("atari/pong")
