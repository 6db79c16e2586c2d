"""Space Invaders: the original's rules, for the device, as pictures that move."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from paircredit.envs.minatar.game import SIZE, cell, columns, layers, moved

FIRST_MOVE_EVERY, LEAST_MOVE_EVERY = 12, 6
BOMB_EVERY, RELOAD = 10, 5

Picture = Bool[Array, "10 10"]


class SpaceInvadersState(eqx.Module):
    """The whole state of the game; names of the original are in brackets where they differ."""

    x: Int[Array, ""]
    """The cannon's column (`pos`)."""
    shots: Picture
    """The player's (`f_bullet_map`)."""
    bombs: Picture
    """The aliens' (`e_bullet_map`)."""
    aliens: Picture
    left: Bool[Array, ""]
    """They go left."""
    move_every: Int[Array, ""]
    """Steps, or as many as there are aliens, if these are fewer (`enemy_move_interval`)."""
    move_timer: Int[Array, ""]
    bomb_timer: Int[Array, ""]
    reload: Int[Array, ""]
    """Steps until the player can shoot (`shot_timer`)."""
    ramp_index: Int[Array, ""]


@dataclasses.dataclass(frozen=True)
class SpaceInvaders:
    """Aliens come down row by row, faster with every wave."""

    ramping: bool
    name: ClassVar[str] = "space_invaders"
    actions: ClassVar[tuple[int, ...]] = (0, 1, 3, 5)
    channels: ClassVar[int] = 6
    start_chances: ClassVar[int] = 0
    step_chances: ClassVar[int] = 0

    def start(self, chance: Float[Array, " 0"]) -> SpaceInvadersState:
        nothing = jnp.zeros((SIZE, SIZE), dtype=bool)
        return SpaceInvadersState(
            x=jnp.int32(5),
            shots=nothing,
            bombs=nothing,
            aliens=_wave(),
            left=jnp.bool_(True),
            move_every=jnp.int32(FIRST_MOVE_EVERY),
            move_timer=jnp.int32(FIRST_MOVE_EVERY),
            bomb_timer=jnp.int32(BOMB_EVERY),
            reload=jnp.int32(0),
            ramp_index=jnp.int32(0),
        )

    def step(
        self, state: SpaceInvadersState, action: Int[Array, ""], chance: Float[Array, " 0"]
    ) -> tuple[SpaceInvadersState, Float[Array, ""], Bool[Array, ""]]:
        bottom = columns()[:, None] == SIZE - 1
        fires = (action == 5) & (state.reload == 0)
        x = moved(state.x, action == 1, action == 3, 0, SIZE - 1)
        # A shot leaves the cannon and flies in the same step.
        shots = _risen(state.shots) | (fires & cell(x, SIZE - 2))
        bombs = _fallen(state.bombs)

        moves = state.move_timer == 0
        aliens, turns = _march(state.aliens, state.left, moves)
        landed = turns & jnp.any(state.aliens & bottom)
        hit = jnp.any((bombs | state.aliens | aliens) & cell(x, SIZE - 1))
        falls = state.bomb_timer == 0
        bombs |= falls & _shooter(aliens, x)
        killed = aliens & shots
        aliens &= ~killed
        cleared = ~jnp.any(aliens)
        harder = cleared & self.ramping & (state.move_every > LEAST_MOVE_EVERY)
        alive = jnp.sum(state.aliens, dtype=jnp.int32)
        after = SpaceInvadersState(
            x=x,
            shots=shots & ~killed,
            bombs=bombs,
            aliens=aliens | (cleared & _wave()),
            left=state.left ^ turns,
            move_every=jnp.where(harder, state.move_every - 1, state.move_every),
            move_timer=jnp.where(moves, jnp.minimum(alive, state.move_every), state.move_timer) - 1,
            bomb_timer=jnp.where(falls, BOMB_EVERY, state.bomb_timer) - 1,
            reload=jnp.maximum(jnp.where(fires, RELOAD, state.reload) - 1, 0),
            ramp_index=jnp.where(harder, state.ramp_index + 1, state.ramp_index),
        )
        return after, jnp.sum(killed, dtype=jnp.int32).astype(float), hit | landed

    def picture(self, state: SpaceInvadersState) -> Bool[Array, "10 10 C"]:
        """Cannon, aliens, aliens that go left, aliens that go right, own bullets, their bullets."""
        going = state.aliens & state.left, state.aliens & ~state.left
        return layers(cell(state.x, SIZE - 1), state.aliens, *going, state.shots, state.bombs)


def _wave() -> Picture:
    """A new wave: four rows of six aliens."""
    row, column = columns()[:, None], columns()
    return (row < 4) & (column >= 2) & (column < 8)


def _risen(picture: Picture) -> Picture:
    """The picture moved up by one row; what leaves it is gone."""
    return jnp.concatenate([picture[1:], jnp.zeros_like(picture[:1])])


def _fallen(picture: Picture) -> Picture:
    """The picture moved down by one row; what leaves it is gone."""
    return jnp.concatenate([jnp.zeros_like(picture[:1]), picture[:-1]])


def _march(aliens: Picture, left: Bool[Array, ""], moves: Bool[Array, ""]) -> tuple[Picture, Bool[Array, ""]]:
    """The aliens one column on or, at the edge, one row down; and whether they turn there.

    From the lowest row they come in at the top again: the game is over then, but so does the original.
    """
    edge = columns() == jnp.where(left, 0, SIZE - 1)
    turns = moves & jnp.any(aliens & edge)
    aside = jnp.where(left, jnp.roll(aliens, -1, axis=1), jnp.roll(aliens, 1, axis=1))
    down = jnp.roll(aliens, 1, axis=0)
    return jnp.where(turns, down, jnp.where(moves, aside, aliens)), turns


def _shooter(aliens: Picture, x: Int[Array, ""]) -> Picture:
    """The place of the lowest alien in the column nearest to the player, the left one of two equally near."""
    column, row = columns(), columns()[:, None]
    distance = 2 * jnp.abs(column - x) + (column > x).astype(jnp.int32)
    # The nearest column first, within it the lowest row: the smallest of numbers that are all different.
    order = jnp.where(aliens, SIZE * distance + (SIZE - 1 - row), SIZE * SIZE * SIZE)
    return aliens & (order == jnp.min(order))
