"""Key-to-Door: players that need no learning, and the exact returns that they achieve.

A player sees the state itself, not its picture. What follows from the rules alone is computed by dynamic programming
over the cells of one room, on the host: how often a walk finds the key, the door, or an apple.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Int32, Key

from paircredit.envs.key_to_door import (
    APPLE_PHASE,
    DOOR,
    DOOR_PHASE,
    DOWN,
    GAP,
    HEIGHT,
    KEY_PHASE,
    LEFT,
    MIDDLE,
    RIGHT,
    UP,
    WIDTH,
    KeyToDoor,
    KeyToDoorState,
)
from paircredit.types import Trajectory

Player = Callable[[KeyToDoor, KeyToDoorState, Key[Array, ""]], Int[Array, ""]]
"""From a state to an action; the key is for players that toss coins."""

LONGEST_SWEEP = 56
"""No apple phase takes `optimal_player` more steps: 12 to the first apple of its sweep, and 44 from cell to cell."""


def random_player(env: KeyToDoor, state: KeyToDoorState, key: Key[Array, ""]) -> Int32[Array, ""]:
    return jax.random.randint(key, (), 0, 4, dtype=jnp.int32)


def optimal_player(env: KeyToDoor, state: KeyToDoorState, key: Key[Array, ""]) -> Int32[Array, ""]:
    """Walk straight to the key, to all apples in the order of a sweep to and fro along the rows, and to the door.

    Where nobody slips and no phase was shortened below 8, 56 and 2 steps, nothing is ever missed, so no player does
    better: from one apple to the next it is never longer than along the sweep (`LONGEST_SWEEP`).
    """
    phase, row, column = env.phase(state.time), state.agent[0], state.agent[1]
    apple = jnp.min(jnp.where(state.apples, jnp.asarray(_SWEEP), _SWEEP.size))
    apple_row, apple_column = apple // WIDTH, apple % WIDTH
    apple_column = jnp.where(apple_row % 2 == 1, apple_column, WIDTH - 1 - apple_column)
    in_phase = [phase == KEY_PHASE, phase == APPLE_PHASE, phase == DOOR_PHASE]
    goal_row = jnp.select(in_phase, [state.key[0], apple_row, jnp.full_like(row, DOOR[0])])
    goal_column = jnp.select(in_phase, [state.key[1], apple_column, jnp.full_like(column, DOOR[1])])
    # A door is entered from below, and the wall in the key room passed through its gap: sideways first.
    sideways_first = phase == DOOR_PHASE
    if env.layout == "walled":
        below = (phase == KEY_PHASE) & (row > MIDDLE[0]) & (goal_row <= MIDDLE[0])
        goal_column = jnp.where(below, jnp.clip(column, MIDDLE[1] - GAP, MIDDLE[1] + GAP), goal_column)
        sideways_first |= below
    vertical = jnp.where(goal_row < row, UP, DOWN)
    horizontal = jnp.where(goal_column < column, LEFT, RIGHT)
    sideways = jnp.where(sideways_first, goal_column != column, goal_row == row)
    return jnp.where(sideways, horizontal, vertical).astype(jnp.int32)


# Rows alternate in direction; row 1, the first of the apple room, goes from left to right.
_SWEEP = np.arange(HEIGHT * WIDTH, dtype=np.int32).reshape(HEIGHT, WIDTH)
_SWEEP[::2] = _SWEEP[::2, ::-1]


def play(env: KeyToDoor, player: Player, key: Key[Array, ""], episodes: int) -> Trajectory:
    """A batch of whole episodes of one player; compile the call, and unused parts of the batch are not computed."""
    reset_key, play_key = jax.random.split(key)
    state, first = jax.vmap(env.reset)(jax.random.split(reset_key, episodes))

    def step(before: tuple, step_key: Key[Array, ""]) -> tuple[tuple, Trajectory]:
        state, now = before
        keys = jax.random.split(step_key, episodes)
        actions = jax.vmap(lambda s, k: player(env, s, k))(state, keys)
        state, after = jax.vmap(env.step)(keys, state, actions)
        valid = jnp.ones((episodes,), dtype=bool)
        recorded = Trajectory(
            now.observation, now.legal, actions, after.reward, after.terminated, after.truncated, valid
        )
        return (state, after), recorded

    (_, last), steps = jax.lax.scan(step, (state, first), jax.random.split(play_key, env.horizon))
    observations = jax.tree.map(lambda x, end: jnp.concatenate([x, end[None]]), steps.observations, last.observation)
    return jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), dataclasses.replace(steps, observations=observations))


def mean_apples(env: KeyToDoor) -> float:
    return (float(env.fewest_apples) + float(env.most_apples)) / 2


def max_expected_return(env: KeyToDoor) -> float:
    """The most that can be expected: all apples, and the door as often as the best walk reaches key and door.

    Exact without slips, from apple phases of 56 steps on (`LONGEST_SWEEP`); otherwise an upper bound, since then some
    apples may be out of reach.
    """
    doors = best_key_rate(env) * best_door_rate(env)
    return float(env.mean) * mean_apples(env) + max(float(env.door_reward), 0.0) * doors


def random_expected_return(env: KeyToDoor) -> float:
    doors = best_key_rate(env, slip=1.0) * best_door_rate(env, slip=1.0)
    return float(env.mean) * random_apples(env) + float(env.door_reward) * doors


def random_apples(env: KeyToDoor) -> float:
    """The expected number of apples that uniformly random actions eat.

    A random walk ignores apples, and they lie in all cells but its first with the same probability. So this is their
    expected number, times the probability that a walk from one cell passes another, averaged over all pairs of cells.
    """
    floor = room_floor(env, APPLE_PHASE)
    cells = np.argwhere(floor).tolist()
    met = [hitting_probability(floor, (row, column), env.apple_steps, 1.0)[floor].sum() - 1 for row, column in cells]
    return mean_apples(env) * float(np.sum(met)) / (len(cells) * (len(cells) - 1))


def best_key_rate(env: KeyToDoor, slip: float | None = None) -> float:
    """The largest probability of finding the key, also with other slips (1: that of uniformly random actions)."""
    floor = room_floor(env, KEY_PHASE)
    rows = np.indices(floor.shape)[0]
    if env.layout == "walled":
        starts, keys = floor & (rows > MIDDLE[0]), floor & (rows < MIDDLE[0])
    else:
        starts, keys = floor, floor
    rates = []
    for row, column in np.argwhere(keys).tolist():
        found = hitting_probability(floor, (row, column), env.key_steps, float(env.slip) if slip is None else slip)
        elsewhere = starts.copy()
        elsewhere[row, column] = False
        rates.append(found[elsewhere].mean())
    return float(np.mean(rates))


def best_door_rate(env: KeyToDoor, slip: float | None = None) -> float:
    """The largest probability of opening the door once the agent has the key; `slip` as for the key."""
    floor = room_floor(env, DOOR_PHASE)
    floor[DOOR] = True
    return float(hitting_probability(floor, DOOR, env.door_steps, float(env.slip) if slip is None else slip)[MIDDLE])


def room_floor(env: KeyToDoor, phase: int) -> np.ndarray:
    """The cells of the map where the agent can stand in a phase; the door is not among them."""
    rows, columns = np.indices((HEIGHT, WIDTH), dtype=np.int32)
    return np.array(env.is_floor(jnp.int32(phase), jnp.asarray(rows), jnp.asarray(columns)))


def hitting_probability(floor: np.ndarray, goal: tuple[int, int], steps: int, slip: float) -> np.ndarray:
    """The probability of passing a cell within some steps, from every cell, for a walk that slips but wants to.

    Every step goes in a random direction with probability `slip`, else in the best one. Off the floor it stays.
    """
    probability = np.zeros(floor.shape)
    probability[goal] = 1.0
    for _ in range(steps):
        moved = []
        for axis, shift in ((0, 1), (0, -1), (1, 1), (1, -1)):
            open_ = np.roll(floor, shift, axis)
            moved.append(np.where(open_, np.roll(probability, shift, axis), probability))
        probability = np.where(floor, slip * np.mean(moved, axis=0) + (1 - slip) * np.max(moved, axis=0), 0.0)
        probability[goal] = 1.0
    return probability
