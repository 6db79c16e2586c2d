"""The games against the real package: the same chance, the same actions, step by step.

`PAIRCREDIT_PARITY_STEPS` sets the steps of each game (100000 for the long version).
"""

from __future__ import annotations

import dataclasses
import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.envs import make_environment
from paircredit.envs.minatar import GAMES
from paircredit.envs.minatar.game import MinAtarState
from paircredit.envs.minatar.seaquest import DIVERS, ENEMIES, SHOTS
from tests.envs.minatar.original import play, play_crowd

STEPS = int(os.environ.get("PAIRCREDIT_PARITY_STEPS", "1500"))


def replay(env, played):
    """The same steps here: what is seen first and after each step, what is paid, what ends."""

    def step(state, row):
        begins, start_chance, hard, action, chance = row
        fresh, _ = env.start(start_chance)
        if env.game.name == "seaquest":
            spawn, move, saved = hard
            game = dataclasses.replace(fresh.game, spawn_speed=spawn, move_speed=move, saved=saved)
            fresh = dataclasses.replace(fresh, game=game)
        state = jax.tree.map(lambda new, old: jnp.where(begins, new, old), fresh, state)
        before = env.game.picture(state.game)
        state, now = env.follow(state, action, chance)
        return state, (before, now.observation.pixels, now.reward, now.terminated, now.truncated)

    start, _ = env.start(jnp.zeros(env.game.start_chances))
    rows = (
        played.begins,
        played.start_chances.astype(np.float32),
        played.hard.astype(np.int32),
        played.actions.astype(np.int32),
        played.chances.astype(np.float32),
    )
    return jax.device_get(jax.jit(lambda rows: jax.lax.scan(step, start, rows)[1])(rows))


def same(played, env):
    first, seen, rewards, terminated, truncated = replay(env, played)
    np.testing.assert_array_equal(first, played.first)
    np.testing.assert_array_equal(seen, 255 * played.observations)
    np.testing.assert_array_equal(rewards, played.rewards)
    np.testing.assert_array_equal(terminated, played.ends)
    assert not truncated.any()


@pytest.mark.parametrize("game", GAMES)
def test_every_step_is_the_originals(game):
    env = make_environment(f"minatar/{game}").env
    played = play(game, env, STEPS, seed=11)
    same(played, env)
    assert played.rewards.sum() > 1 and (played.ends.any() or game == "freeway")
    assert len({tuple(row) for row in played.observations.reshape(STEPS, -1)}) > 100
    if game in ("asterix", "seaquest", "space_invaders"):
        assert played.ramp.max() >= (1 if STEPS < 10_000 else 3)
    if game == "seaquest":
        assert played.rewards.max() >= 5, "somebody came up with six divers"


@pytest.mark.parametrize("game", ["asterix", "seaquest", "space_invaders"])
def test_games_that_stay_easy_do_so_as_the_original(game):
    env = make_environment(f"minatar/{game}", difficulty_ramping=False).env
    played = play(game, env, STEPS, seed=12, ramping=False)
    same(played, env)
    assert not played.ramp.any() and played.ends.any()


CROWD_STEPS = 5


def test_in_a_crowd_the_same_ones_are_hit():
    """Who is hit where several could be, who comes aboard when there is room for one."""
    crowds = [play_crowd(seed, CROWD_STEPS) for seed in range(max(1000, STEPS // 20))]
    env = make_environment("minatar/seaquest", sticky_action_probability=0.0).env
    start, _ = env.start(jnp.zeros(0))

    def run(numbers, actions):
        def step(state, action):
            state, now = env.follow(state, action, jnp.full(6, 0.5))
            return state, (now.observation.pixels, now.reward, now.terminated)

        return jax.lax.scan(step, MinAtarState(sea_of(start.game, *numbers), start.last_action), actions)[1]

    numbers = jax.tree.map(lambda *leaves: np.stack(leaves), *[numbers_of(crowd) for crowd in crowds])
    actions = np.array([crowd.actions for crowd in crowds], np.int32)
    seen, rewards, terminated = jax.device_get(jax.jit(jax.vmap(run))(numbers, actions))
    np.testing.assert_array_equal(rewards, [crowd.rewards for crowd in crowds])
    np.testing.assert_array_equal(terminated, [crowd.ends for crowd in crowds])
    np.testing.assert_array_equal(seen, 255 * np.array([crowd.observations for crowd in crowds]))
    assert rewards.max() >= 2


def numbers_of(crowd):
    """Player, bullets, enemies (x, y, right, wait, submarine, reload, alive) and divers, the newest first."""
    enemies = [(*fish, False, 0) for fish in crowd.fish] + [(*sub[:4], True, sub[4]) for sub in crowd.submarines]
    return (
        np.array(crowd.player, np.int32),
        columns(crowd.shots, SHOTS),
        columns(enemies, ENEMIES),
        columns(crowd.divers, DIVERS),
    )


def sea_of(empty, player, shots, enemies, divers):
    """The same as a state."""
    x, y, right, wait, submarine, reload, alive = enemies
    return dataclasses.replace(
        empty,
        x=player[0],
        y=player[1],
        right=player[2] > 0,
        saved=player[3],
        at_surface=jnp.zeros((), dtype=bool),
        enemy_timer=jnp.int32(100),
        diver_timer=jnp.int32(100),
        move_speed=jnp.int32(2),
        shots=things(empty.shots, shots[0], shots[1], shots[2], shots[3]),
        divers=things(empty.divers, divers[0], divers[1], divers[2], divers[4], wait=divers[3]),
        enemies=things(empty.enemies, x, y, right, alive, wait=wait, submarine=submarine > 0, reload=reload),
    )


def things(none, x, y, right, alive, **more):
    return dataclasses.replace(none, x=x, y=y, right=right > 0, alive=alive > 0, **more)


def columns(things, size):
    """Fields of things and whether there is one, the last thing first, padded to the size of a buffer."""
    rows = np.zeros((size, len(things[0]) + 1), np.int32)
    rows[: len(things)] = [(*thing, True) for thing in things[::-1]]
    return rows.T
