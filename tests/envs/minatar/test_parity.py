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
from tests.envs.minatar.original import play

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
        else:  # games that go on behind their end
            state = dataclasses.replace(state, game=state.game.replace(_terminal=jnp.zeros_like(state.game._terminal)))
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
