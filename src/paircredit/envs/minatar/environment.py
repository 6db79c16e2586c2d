"""What the five games share: chance, sticky actions, pictures of bytes."""

from __future__ import annotations

from typing import Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from paircredit.envs.protocol import EnvSpec, Pixels
from paircredit.types import PixelObservation, PyTree, TimeStep

SIZE = 10
"""Rows and columns of a picture."""
NO_BOUND = 2**31 - 1
"""Episodes last as long as they last; rollouts are pieces of them."""


class Game(Protocol):
    """The rules of a game. All chance comes as numbers that are uniform in [0, 1)."""

    @property
    def name(self) -> str:
        """Of the game."""
        ...

    @property
    def actions(self) -> tuple[int, ...]:
        """The actions that differ in this game, as the original numbers all six."""
        ...

    @property
    def channels(self) -> int:
        """Kinds of things in a picture."""
        ...

    @property
    def start_chances(self) -> int:
        """How many random numbers a start needs."""
        ...

    @property
    def step_chances(self) -> int:
        """How many random numbers a step needs."""
        ...

    def start(self, chance: Float[Array, " start"]) -> PyTree:
        """The state at the beginning of an episode."""
        ...

    def step(
        self, state: PyTree, action: Int[Array, ""], chance: Float[Array, " step"]
    ) -> tuple[PyTree, Float[Array, ""], Bool[Array, ""]]:
        """The next state, what is paid, and whether the game is over; actions as the original numbers them."""
        ...

    def picture(self, state: PyTree) -> Bool[Array, "10 10 C"]:
        """What there is to see."""
        ...


class MinAtarState(eqx.Module):
    """A game, and the action that was carried out last."""

    game: PyTree
    last_action: Int[Array, ""]


class MinAtar(eqx.Module):
    """A game with sticky actions.

    Attributes:
        sticky_action_probability: that the last action is repeated, whatever was chosen.
        game: its rules.
    """

    sticky_action_probability: float | Array
    game: Game = eqx.field(static=True)

    @property
    def spec(self) -> EnvSpec:
        """The shape of the environment."""
        seen = Pixels(SIZE, SIZE, self.game.channels, 0)
        return EnvSpec(f"minatar/{self.game.name}", len(self.game.actions), seen, NO_BOUND)

    def reset(self, key: Key[Array, ""]) -> tuple[MinAtarState, TimeStep]:
        """A new episode."""
        return self.start(jax.random.uniform(key, (self.game.start_chances,), dtype=float))

    def start(self, chance: Float[Array, " start"]) -> tuple[MinAtarState, TimeStep]:
        """A new episode, given its chance."""
        state = MinAtarState(self.game.start(chance), jnp.zeros((), dtype=jnp.int32))
        return state, self._seen(state, jnp.zeros((), dtype=float), jnp.zeros((), dtype=bool))

    def step(self, key: Key[Array, ""], state: MinAtarState, action: Int[Array, ""]) -> tuple[MinAtarState, TimeStep]:
        """One transition."""
        return self.follow(state, action, jax.random.uniform(key, (1 + self.game.step_chances,), dtype=float))

    def follow(
        self, state: MinAtarState, action: Int[Array, ""], chance: Float[Array, " one_plus_step"]
    ) -> tuple[MinAtarState, TimeStep]:
        """One transition, given its chance: the first number decides whether the last action sticks."""
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


def whole_number(chance: Float[Array, "*n"], count: int | Int[Array, ""]) -> Int[Array, "*n"]:
    """A uniform number in [0, 1) as one of 0 … count − 1."""
    numbers = jnp.floor(chance * jnp.asarray(count).astype(chance.dtype)).astype(jnp.int32)
    return jnp.minimum(numbers, count - 1)
