"""Freeway: the original's rules, for the device; every lane has one car, so that cars are arrays over lanes."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from paircredit.envs.minatar.game import LANES, SIZE, ahead, columns, lanes, moved, rows_of, uniform_int

SPEEDS = 5
COLUMN = 4
"""The player's column."""
MOVES_EVERY, LAST_STEP = 3, 2500


class FreewayState(eqx.Module):
    """Player, cars by lane, and timers."""

    y: Int[Array, ""]
    move_timer: Int[Array, ""]
    steps_left: Int[Array, ""]
    place: Int[Array, " 8"]
    """Columns of the cars."""
    right: Bool[Array, " 8"]
    """They go right."""
    pause: Int[Array, " 8"]
    """Steps between two moves of a car."""
    wait: Int[Array, " 8"]
    """Steps until its next one."""


@dataclasses.dataclass(frozen=True)
class Freeway:
    """Eight lanes of cars; whoever crosses them all gets a point and new cars."""

    name: ClassVar[str] = "freeway"
    actions: ClassVar[tuple[int, ...]] = (0, 2, 4)
    channels: ClassVar[int] = 2 + SPEEDS
    start_chances: ClassVar[int] = 2 * LANES
    step_chances: ClassVar[int] = 2 * LANES

    def start(self, chance: Float[Array, " 16"]) -> FreewayState:
        """Chance: speeds and directions of the cars."""
        pause, right = _cars(chance)
        return FreewayState(
            y=jnp.int32(SIZE - 1),
            move_timer=jnp.int32(MOVES_EVERY),
            steps_left=jnp.int32(LAST_STEP),
            place=jnp.zeros(LANES, dtype=jnp.int32),
            right=right,
            pause=pause,
            wait=pause,
        )

    def step(
        self, state: FreewayState, action: Int[Array, ""], chance: Float[Array, " 16"]
    ) -> tuple[FreewayState, Float[Array, ""], Bool[Array, ""]]:
        """Chance: the new speeds and directions, for whoever has crossed."""
        may = state.move_timer == 0
        up, down = may & (action == 2), may & (action == 4)
        y = moved(state.y, up, down, 0, SIZE - 1)
        crossed = y == 0
        y = jnp.where(crossed, SIZE - 1, y)
        new_pause, new_right = _cars(chance)
        pause, right = jnp.where(crossed, new_pause, state.pause), jnp.where(crossed, new_right, state.right)
        wait = jnp.where(crossed, new_pause, state.wait)

        moves = wait == 0
        place = jnp.where(moves, ahead(state.place, right) % SIZE, state.place)
        hit = jnp.any((lanes() == y) & ((state.place == COLUMN) | (place == COLUMN)))
        move_timer = jnp.where(up | down, MOVES_EVERY, state.move_timer)
        after = FreewayState(
            y=jnp.where(hit, SIZE - 1, y),
            move_timer=jnp.maximum(move_timer - 1, 0),
            steps_left=state.steps_left - 1,
            place=place,
            right=right,
            pause=pause,
            wait=jnp.where(moves, pause, wait - 1),
        )
        return after, crossed.astype(float), after.steps_left < 0

    def picture(self, state: FreewayState) -> Bool[Array, "10 10 C"]:
        """Player, cars, trails by speed."""
        column, row = columns()[:, None], columns()[:, None, None]
        channel = jnp.arange(self.channels, dtype=jnp.int32)
        player = (row == state.y) & (column == COLUMN)
        car = rows_of(state.place)[:, None, None] == column
        after = rows_of(ahead(state.place, ~state.right) % SIZE)[:, None, None] == column
        trail = after & (rows_of(state.pause)[:, None, None] == channel - 1)
        return jnp.where(channel == 0, player, jnp.where(channel == 1, car, trail))


def _cars(chance: Float[Array, " 16"]) -> tuple[Int[Array, " 8"], Bool[Array, " 8"]]:
    """Pauses and directions of new cars."""
    return 1 + uniform_int(chance[:LANES], SPEEDS), chance[LANES:] >= 1 / 2
