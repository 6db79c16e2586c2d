"""A game as the learner sees it: lives, clipped rewards, pictures with the newest frame last."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from paircredit.envs.atari.pool import AtariPool, Options, Raw
from paircredit.envs.hosted import Hosted
from paircredit.envs.protocol import EnvSpec, Pixels
from paircredit.types import PixelObservation, TimeStep


class Atari(Hosted):
    """One of the games, in pieces.

    Attributes:
        options: of the emulator.
        num_actions: that the game knows.
        steps: of a piece.
        clip_rewards: learn from the sign of rewards.
        end_at_life_loss: for learning, a lost life is an end.
        in_graph: rollouts are compiled programs.
        most_groups: of members, that do not wait for each other.
    """

    options: Options = eqx.field(static=True)
    num_actions: int = eqx.field(static=True)
    steps: int = eqx.field(static=True)
    clip_rewards: bool = eqx.field(static=True)
    end_at_life_loss: bool = eqx.field(static=True)
    in_graph: bool = eqx.field(static=True)
    most_groups: int = eqx.field(static=True)

    @property
    def spec(self) -> EnvSpec:
        """The shape of the environment."""
        given = self.options
        return EnvSpec(
            name=f"atari/{given.game}",
            num_actions=self.num_actions,
            observation=Pixels(given.size, given.size, given.stack, 0, stacked=given.stack),
            horizon=self.steps,
            whole_episodes=False,
            frames_per_step=given.frame_skip,
        )

    def groups(self, members: int) -> int:
        """As few as have no larger group than the limit makes necessary: all wait for the largest one."""
        largest = -(-members // self.most_groups)
        return -(-members // largest)

    def open(self, seeds: np.ndarray) -> AtariPool:
        """So many emulators."""
        return AtariPool(self.options, seeds)

    def raw(self) -> Raw:
        """The shapes of what one emulator says."""
        given = self.options
        whole, truth = jax.ShapeDtypeStruct((), jnp.int32), jax.ShapeDtypeStruct((), jnp.bool_)
        frames = jax.ShapeDtypeStruct((given.stack, given.size, given.size), jnp.uint8)
        return Raw(frames=frames, reward=whole, terminated=truth, truncated=truth, lives=whole)

    def read(self, state: Int[Array, ""] | None, raw: Raw) -> tuple[Int[Array, ""], TimeStep]:
        """The state is the number of lives before."""
        lost = jnp.zeros((), dtype=bool) if state is None else raw.lives < state
        score = raw.reward.astype(float)
        pixels = jnp.moveaxis(raw.frames, 0, -1)
        terminated = raw.terminated | lost if self.end_at_life_loss else raw.terminated
        return raw.lives, TimeStep(
            observation=PixelObservation(pixels, jnp.zeros((0,), dtype=bool)),
            legal=jnp.ones((self.num_actions,), dtype=bool),
            reward=jnp.sign(score) if self.clip_rewards else score,
            terminated=terminated,
            truncated=raw.truncated & ~terminated,
            over=raw.terminated | raw.truncated,
            score=score,
        )
