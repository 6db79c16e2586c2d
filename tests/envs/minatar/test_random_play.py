"""What random play is paid in MinAtar's games, which figures and claims hold scores against."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.envs import make_environment
from paircredit.envs.minatar import GAMES
from paircredit.studies.games.measures import MINATAR
from tests.rungs import nightly_but

ACTORS, MOST_STEPS = 512, 2_600
"""Only Freeway needs this many steps; nobody plays that long at random elsewhere."""


def first_games(env, key):
    """The return of the first game of every actor, and whether it has ended."""

    def going_on(carry):
        step, _, _, over = carry
        return (step < MOST_STEPS) & ~jnp.all(over)

    def step(carry):
        number, state, paid, over = carry
        action_key, step_key = jax.random.split(jax.random.fold_in(key, number))
        actions = jax.random.randint(action_key, (ACTORS,), 0, env.spec.num_actions)
        state, after = jax.vmap(env.step)(jax.random.split(step_key, ACTORS), state, actions)
        paid = paid + jnp.where(over, 0.0, after.reward)
        return number + 1, state, paid, over | after.terminated | after.truncated

    state, first = jax.vmap(env.reset)(jax.random.split(jax.random.fold_in(key, MOST_STEPS), ACTORS))
    nobody = jnp.zeros((ACTORS,), dtype=bool)
    _, _, paid, over = jax.lax.while_loop(going_on, step, (jnp.asarray(0), state, jnp.zeros_like(first.reward), nobody))
    return paid, over


@pytest.mark.parametrize("game", nightly_but(["breakout"], GAMES))
def test_what_random_play_is_paid(game):
    env = make_environment(f"minatar/{game}")
    paid, over = jax.device_get(jax.jit(first_games)(env, jax.random.key(0)))
    assert over.all()
    error = paid.std() / np.sqrt(ACTORS)
    assert paid.mean() == pytest.approx(MINATAR.random[game], abs=4 * error)
    assert error < 0.05 * max(1.0, MINATAR.random[game])


def test_every_game_has_a_number():
    assert tuple(MINATAR.random) == tuple(GAMES)
