"""Breakout: the original's rules, for the device."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from paircredit.envs.minatar.game import SIZE, ahead, cell, columns, inside, layers, moved

BOTTOM = SIZE - 1


class BreakoutState(eqx.Module):
    """Paddle, ball, where the ball was before, and bricks."""

    x: Int[Array, ""]
    """The paddle's column."""
    ball_x: Int[Array, ""]
    ball_y: Int[Array, ""]
    right: Bool[Array, ""]
    """The ball goes right."""
    down: Bool[Array, ""]
    last_x: Int[Array, ""]
    last_y: Int[Array, ""]
    bricks: Bool[Array, "10 10"]
    in_brick: Bool[Array, ""]
    """It has met a brick in the step before, and breaks none in this one."""


@dataclasses.dataclass(frozen=True)
class Breakout:
    """A ball, a paddle, three rows of bricks."""

    name: ClassVar[str] = "breakout"
    actions: ClassVar[tuple[int, ...]] = (0, 1, 3)
    channels: ClassVar[int] = 4
    start_chances: ClassVar[int] = 1
    step_chances: ClassVar[int] = 0

    def start(self, chance: Float[Array, " 1"]) -> BreakoutState:
        """Chance: does the ball come from the left or from the right?"""
        from_left = chance[0] < 1 / 2
        ball_x, ball_y = jnp.where(from_left, 0, SIZE - 1), jnp.int32(3)
        return BreakoutState(
            x=jnp.int32(4),
            ball_x=ball_x,
            ball_y=ball_y,
            right=from_left,
            down=jnp.bool_(True),
            last_x=ball_x,
            last_y=ball_y,
            bricks=_wall(),
            in_brick=jnp.bool_(False),
        )

    def step(
        self, state: BreakoutState, action: Int[Array, ""], chance: Float[Array, " 0"]
    ) -> tuple[BreakoutState, Float[Array, ""], Bool[Array, ""]]:
        paddle = moved(state.x, action == 1, action == 3, 0, SIZE - 1)
        ball_x, ball_y = ahead(state.ball_x, state.right), ahead(state.ball_y, state.down)
        right = state.right ^ ~inside(ball_x)
        ball_x = jnp.clip(ball_x, 0, SIZE - 1)

        at_top = ball_y < 0
        here = cell(ball_x, ball_y)
        in_brick = jnp.any(state.bricks & here)
        breaks = in_brick & ~state.in_brick
        at_bottom = ~in_brick & (ball_y == BOTTOM)
        caught = at_bottom & (state.ball_x == paddle)
        edged = at_bottom & ~caught & (ball_x == paddle)
        bounces = breaks | caught | edged
        bricks = (state.bricks & ~(breaks & here)) | (at_bottom & ~jnp.any(state.bricks) & _wall())
        after = BreakoutState(
            x=paddle,
            ball_x=ball_x,
            ball_y=jnp.where(bounces, state.ball_y, jnp.maximum(ball_y, 0)),
            right=right ^ edged,
            down=state.down ^ (at_top | bounces),
            last_x=state.ball_x,
            last_y=state.ball_y,
            bricks=bricks,
            in_brick=in_brick,
        )
        return after, breaks.astype(float), at_bottom & ~caught & ~edged

    def picture(self, state: BreakoutState) -> Bool[Array, "10 10 C"]:
        """Paddle, ball, trail, bricks."""
        ball, trail = cell(state.ball_x, state.ball_y), cell(state.last_x, state.last_y)
        return layers(cell(state.x, BOTTOM), ball, trail, state.bricks)


def _wall() -> Bool[Array, "10 10"]:
    """Bricks in rows 1 to 3."""
    row = columns()[:, None]
    return jnp.broadcast_to((row >= 1) & (row <= 3), (SIZE, SIZE))
