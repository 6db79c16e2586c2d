"""Asterix: the original's rules, for the device.

A lane holds one thing at most, so that things are arrays over lanes and nothing is done one after the other.
"""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from paircredit.envs.minatar.game import LANES, SIZE, ahead, columns, inside, lanes, layers, moved, rows_of, uniform_int

FIRST_SPAWN_SPEED, FIRST_MOVE_SPEED = 10, 5
HARDER_EVERY = 100
NOWHERE = -1
"""A column outside the picture."""


class AsterixState(eqx.Module):
    """Player, things by lane, and timers; lanes without a thing may hold anything."""

    x: Int[Array, ""]
    y: Int[Array, ""]
    there: Bool[Array, " 8"]
    place: Int[Array, " 8"]
    """Columns of the things."""
    right: Bool[Array, " 8"]
    """They go right."""
    gold: Bool[Array, " 8"]
    """They are gold, and no enemies."""
    spawn_timer: Int[Array, ""]
    spawn_speed: Int[Array, ""]
    move_timer: Int[Array, ""]
    move_speed: Int[Array, ""]
    ramp_timer: Int[Array, ""]
    ramp_index: Int[Array, ""]


@dataclasses.dataclass(frozen=True)
class Asterix:
    """Gold and enemies come from both sides, faster and faster."""

    ramping: bool
    name: ClassVar[str] = "asterix"
    actions: ClassVar[tuple[int, ...]] = (0, 1, 2, 3, 4)
    channels: ClassVar[int] = 4
    start_chances: ClassVar[int] = 0
    step_chances: ClassVar[int] = 3

    def start(self, chance: Float[Array, " 0"]) -> AsterixState:
        return AsterixState(
            x=jnp.int32(5),
            y=jnp.int32(5),
            there=jnp.zeros(LANES, dtype=bool),
            place=jnp.zeros(LANES, dtype=jnp.int32),
            right=jnp.zeros(LANES, dtype=bool),
            gold=jnp.zeros(LANES, dtype=bool),
            spawn_timer=jnp.int32(FIRST_SPAWN_SPEED),
            spawn_speed=jnp.int32(FIRST_SPAWN_SPEED),
            move_timer=jnp.int32(FIRST_MOVE_SPEED),
            move_speed=jnp.int32(FIRST_MOVE_SPEED),
            ramp_timer=jnp.int32(HARDER_EVERY),
            ramp_index=jnp.int32(0),
        )

    def step(
        self, state: AsterixState, action: Int[Array, ""], chance: Float[Array, " 3"]
    ) -> tuple[AsterixState, Float[Array, ""], Bool[Array, ""]]:
        """Chance: from the left? gold? which of the free lanes?"""
        spawns, moves = state.spawn_timer == 0, state.move_timer == 0
        new = spawns & _chosen_lane(state.there, chance[2])
        there, right = state.there | new, jnp.where(new, chance[0] < 1 / 2, state.right)
        gold = jnp.where(new, chance[1] < 1 / 3, state.gold)
        place = jnp.where(new, jnp.where(right, 0, SIZE - 1), state.place)

        x = moved(state.x, action == 1, action == 3, 0, SIZE - 1)
        y = moved(state.y, action == 2, action == 4, 1, LANES)
        own_lane = lanes() == y
        met = there & own_lane & (place == x)
        # Gold is taken where it is met; an enemy goes on.
        there &= ~(met & gold)
        place = jnp.where(moves, ahead(place, right), place)
        there &= inside(place)
        meets = moves & there & own_lane & (place == x)
        there &= ~(meets & gold)

        harder = self.ramping & ((state.spawn_speed > 1) | (state.move_speed > 1))
        now = harder & (state.ramp_timer < 0)
        faster = now & (state.move_speed > 1) & (state.ramp_index % 2 == 1)
        after = AsterixState(
            x=x,
            y=y,
            there=there,
            place=place,
            right=right,
            gold=gold,
            spawn_timer=jnp.where(spawns, state.spawn_speed, state.spawn_timer) - 1,
            spawn_speed=jnp.where(now, jnp.maximum(state.spawn_speed - 1, 1), state.spawn_speed),
            move_timer=jnp.where(moves, state.move_speed, state.move_timer) - 1,
            move_speed=jnp.where(faster, state.move_speed - 1, state.move_speed),
            ramp_timer=jnp.where(now, HARDER_EVERY, jnp.where(harder, state.ramp_timer - 1, state.ramp_timer)),
            ramp_index=jnp.where(now, state.ramp_index + 1, state.ramp_index),
        )
        anything = met | meets
        return after, jnp.any(anything & gold).astype(float), jnp.any(anything & ~gold)

    def picture(self, state: AsterixState) -> Bool[Array, "10 10 C"]:
        """Player, enemies, trails, gold."""
        place = jnp.where(state.there, state.place, NOWHERE)
        after = jnp.where(state.there, ahead(state.place, ~state.right), NOWHERE)
        enemy, gold = jnp.where(state.gold, NOWHERE, place), jnp.where(state.gold, place, NOWHERE)
        column, row = columns(), columns()[:, None]
        things = (rows_of(by_lane)[:, None] == column for by_lane in (enemy, after, gold))
        return layers((row == state.y) & (column == state.x), *things)


def _chosen_lane(there: Bool[Array, " 8"], chance: Float[Array, ""]) -> Bool[Array, " 8"]:
    """A random lane among those without a thing; none where all have one."""
    free = ~there
    number = jnp.cumsum(free.astype(jnp.int32), dtype=jnp.int32) - 1
    return free & (number == uniform_int(chance, number[-1] + 1))
