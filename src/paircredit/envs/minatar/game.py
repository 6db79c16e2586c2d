"""What the five games share: chance, sticky actions, pictures of bytes, and the few functions they draw with."""

from __future__ import annotations

from typing import ClassVar, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from paircredit.envs.protocol import EnvSpec, Pixels
from paircredit.types import PixelObservation, PyTree, TimeStep

SIZE = 10
"""Rows and columns of a picture."""
LANES = SIZE - 2
"""Lanes of games in which things cross the picture: all rows but the first and the last."""
NO_BOUND = 2**31 - 1
"""The horizon of games without one; rollouts are segments of their episodes."""


class Game(Protocol):
    """The rules of a game. All chance comes as numbers that are uniform in [0, 1)."""

    name: ClassVar[str]
    actions: ClassVar[tuple[int, ...]]
    """The actions that differ in this game, as the original numbers all six."""
    channels: ClassVar[int]
    """Kinds of things in a picture."""
    start_chances: ClassVar[int]
    step_chances: ClassVar[int]
    """The number of random numbers that a start and a step need."""

    def start(self, chance: Float[Array, " start"]) -> PyTree:
        """The state at the beginning of an episode."""

    def step(
        self, state: PyTree, action: Int[Array, ""], chance: Float[Array, " step"]
    ) -> tuple[PyTree, Float[Array, ""], Bool[Array, ""]]:
        """The next state, the reward, and whether the game is over. Actions have the numbers of the original."""

    def picture(self, state: PyTree) -> Bool[Array, "10 10 C"]:
        """The picture: one channel per kind of thing."""


class MinAtarState(eqx.Module):
    """The state of a game, and the action that was carried out last."""

    game: PyTree
    last_action: Int[Array, ""]


class MinAtar(eqx.Module):
    """A game with sticky actions: every so often the last one is repeated, whatever was chosen."""

    sticky_action_probability: float | Array
    game: Game = eqx.field(static=True)

    @property
    def spec(self) -> EnvSpec:
        seen = Pixels(SIZE, SIZE, self.game.channels, 0)
        return EnvSpec(f"minatar/{self.game.name}", len(self.game.actions), seen, NO_BOUND)

    def reset(self, key: Key[Array, ""]) -> tuple[MinAtarState, TimeStep]:
        return self.start(jax.random.uniform(key, (self.game.start_chances,), dtype=float))

    def start(self, chance: Float[Array, " start"]) -> tuple[MinAtarState, TimeStep]:
        state = MinAtarState(self.game.start(chance), jnp.zeros((), dtype=jnp.int32))
        return state, self._seen(state, jnp.zeros((), dtype=float), jnp.zeros((), dtype=bool))

    def step(self, key: Key[Array, ""], state: MinAtarState, action: Int[Array, ""]) -> tuple[MinAtarState, TimeStep]:
        return self.follow(state, action, jax.random.uniform(key, (1 + self.game.step_chances,), dtype=float))

    def follow(
        self, state: MinAtarState, action: Int[Array, ""], chance: Float[Array, " one_plus_step"]
    ) -> tuple[MinAtarState, TimeStep]:
        """One transition, given its random numbers: the first decides whether the last action sticks."""
        chosen = jnp.asarray(self.game.actions, dtype=jnp.int32)[action]
        action = jnp.where(chance[0] < self.sticky_action_probability, state.last_action, chosen)
        game, reward, over = self.game.step(state.game, action, chance[1:])
        state = MinAtarState(game, action)
        return state, self._seen(state, reward, over)

    def _seen(self, state: MinAtarState, reward: Float[Array, ""], over: Bool[Array, ""]) -> TimeStep:
        pixels = jnp.where(self.game.picture(state.game), 255, 0).astype(jnp.uint8)
        return TimeStep(
            observation=PixelObservation(pixels, jnp.zeros((0,), dtype=bool)),
            legal=jnp.ones((len(self.game.actions),), dtype=bool),
            reward=reward.astype(float),
            terminated=over,
            truncated=jnp.zeros((), dtype=bool),
        )


def uniform_int(chance: Float[Array, "*n"], count: int | Int[Array, ""]) -> Int[Array, "*n"]:
    """One of 0 … count − 1, from a uniform number in [0, 1)."""
    numbers = jnp.floor(chance * jnp.asarray(count).astype(chance.dtype)).astype(jnp.int32)
    return jnp.minimum(numbers, count - 1)


def columns() -> Int[Array, " 10"]:
    """The numbers of the columns, or of the rows."""
    return jnp.arange(SIZE, dtype=jnp.int32)


def inside(x: Int[Array, "*N"]) -> Bool[Array, "*N"]:
    return (x >= 0) & (x < SIZE)


def cell(x: Int[Array, ""], y: int | Int[Array, ""]) -> Bool[Array, "10 10"]:
    """The picture of one thing."""
    return (columns()[:, None] == y) & (columns() == x)


def layers(*pictures: Bool[Array, "10 10"]) -> Bool[Array, "10 10 C"]:
    """One picture per channel. They are selected by channel, not stacked: on a CPU that is faster."""
    channel, chosen = jnp.arange(len(pictures), dtype=jnp.int32), pictures[0][..., None]
    for number, picture in enumerate(pictures[1:], 1):
        chosen = jnp.where(channel == number, picture[..., None], chosen)
    return chosen


def lanes() -> Int[Array, " 8"]:
    """The rows of the lanes."""
    return columns()[1:-1]


def rows_of(by_lane: Int[Array, " 8"]) -> Int[Array, " 10"]:
    """Numbers by lane, for all rows: −1 where there is no lane."""
    return jnp.pad(by_lane, 1, constant_values=-1)


def ahead(x: Int[Array, "*N"], right: Bool[Array, "*N"]) -> Int[Array, "*N"]:
    """The next column in the direction of motion; with the direction reversed, the column left behind."""
    return jnp.where(right, x + 1, x - 1)


def moved(x: Int[Array, ""], less: Bool[Array, ""], more: Bool[Array, ""], lowest: int, highest: int) -> Int[Array, ""]:
    """A coordinate, one less or one more, between two bounds."""
    return jnp.clip(x - less.astype(jnp.int32) + more.astype(jnp.int32), lowest, highest)
