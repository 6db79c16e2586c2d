"""Two of the games: the rules are pgx's port, which follows the original step by step; chance is ours.

The port is called below its random layer, so that a game's chance can be given, and mixes types freely. Why the other
three games are our own, docs/environments.md says.
"""

from __future__ import annotations

import dataclasses
import importlib
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from paircredit.envs.minatar.environment import whole_number
from paircredit.errors import PaircreditError
from paircredit.types import PyTree

LANES = 8
"""Lanes of Freeway."""

Step = tuple[PyTree, Float[Array, ""], Bool[Array, ""]]


def require_port(game: str) -> None:
    """Refuse where the port is not installed."""
    try:
        _port(game)
    except ImportError as missing:
        raise PaircreditError(
            f"minatar/{game} needs a package that is not installed ({missing.name or missing}): "
            "pip install 'paircredit[minatar]'."
        ) from missing


def _port(game: str) -> Any:
    """The module of a game; loaded here because nobody else needs it, and it touches the device at once."""
    with jax.numpy_dtype_promotion("standard"):
        return importlib.import_module(f"pgx.minatar.{game}")


def _picture(game: str, state: PyTree) -> Bool[Array, "10 10 C"]:
    with jax.numpy_dtype_promotion("standard"):
        picture: Array = _port(game)._observe(state)
        return picture


def _step(game: str, state: PyTree, action: Int[Array, ""], **chance: Array) -> Step:
    with jax.numpy_dtype_promotion("standard"):
        state = _port(game)._step_det(state, action, **chance)
    return state, state.rewards[0], state.terminated


@dataclasses.dataclass(frozen=True)
class Breakout:
    """A ball, a paddle, three rows of bricks."""

    name: ClassVar[str] = "breakout"
    actions: ClassVar[tuple[int, ...]] = (0, 1, 3)
    channels: ClassVar[int] = 4
    start_chances: ClassVar[int] = 1
    step_chances: ClassVar[int] = 0

    def start(self, chance: Float[Array, " 1"]) -> PyTree:
        """Chance: does the ball come from the left or from the right?"""
        return _port(self.name)._init_det(ball_start=whole_number(chance[0], 2))

    def step(self, state: PyTree, action: Int[Array, ""], chance: Float[Array, " 0"]) -> Step:
        """Nothing is random."""
        return _step(self.name, state, action)

    def picture(self, state: PyTree) -> Bool[Array, "10 10 C"]:
        """Paddle, ball, trail, bricks."""
        return _picture(self.name, state)


@dataclasses.dataclass(frozen=True)
class Freeway:
    """Eight lanes of cars; whoever crosses them all gets a point and new cars."""

    name: ClassVar[str] = "freeway"
    actions: ClassVar[tuple[int, ...]] = (0, 2, 4)
    channels: ClassVar[int] = 7
    start_chances: ClassVar[int] = 2 * LANES
    step_chances: ClassVar[int] = 2 * LANES

    def start(self, chance: Float[Array, " 16"]) -> PyTree:
        """Chance: the cars."""
        with jax.numpy_dtype_promotion("standard"):
            return _port(self.name)._init_det(**self._cars(chance))

    def step(self, state: PyTree, action: Int[Array, ""], chance: Float[Array, " 16"]) -> Step:
        """Chance: the new cars, for whoever has crossed."""
        return _step(self.name, state, action, **self._cars(chance))

    def picture(self, state: PyTree) -> Bool[Array, "10 10 C"]:
        """Player, cars, trails by speed."""
        return _picture(self.name, state)

    def _cars(self, chance: Float[Array, " 16"]) -> dict[str, Array]:
        directions = jnp.where(chance[LANES:] < 1 / 2, -1, 1).astype(jnp.int32)
        return {"speeds": 1 + whole_number(chance[:LANES], 5), "directions": directions}
