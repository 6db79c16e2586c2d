"""A game as the learner sees it: lives, clipped rewards, pictures with the newest frame last."""

from __future__ import annotations

import os
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, UInt8

from paircredit.envs.atari.emulators import Options
from paircredit.envs.atari.pool import AtariPool, AtariProcess, Raw
from paircredit.envs.hosted import Hosted
from paircredit.envs.protocol import EnvSpec, Pixels
from paircredit.envs.turns import Turns
from paircredit.types import PixelObservation, TimeStep


class Seen(NamedTuple):
    """What is kept from one answer of an emulator to the next.

    Attributes:
        lives: that were left.
        over: the game was, so that the next answer begins another one.
        frames: all of the observation but the oldest.
    """

    lives: Int[Array, ""]
    over: Bool[Array, ""]
    frames: UInt8[Array, "H W older"]


class Atari(Hosted):
    """One of the games, in segments.

    Frames are stacked here and not by the emulator: a quarter of the bytes leaves the host.

    Attributes:
        options: of the emulator.
        num_actions: that the game knows.
        stack: frames in an observation.
        steps: of a segment.
        clip_rewards: learn from the sign of rewards.
        end_at_life_loss: for learning, a lost life is an end.
        in_graph: rollouts are compiled programs.
        most_groups: of members, that do not wait for each other.
    """

    options: Options = eqx.field(static=True)
    num_actions: int = eqx.field(static=True)
    stack: int = eqx.field(static=True)
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
            observation=Pixels(given.size, given.size, self.stack, 0, stacked=self.stack),
            horizon=self.steps,
            whole_episodes=False,
            frames_per_step=given.frame_skip,
        )

    def groups(self, members: int) -> int:
        """As few as have no larger group than the limit makes necessary: all wait for the largest one."""
        largest = -(-members // self.most_groups)
        return -(-members // largest)

    def open(self, seeds: np.ndarray, turns: Turns | None = None) -> AtariPool | AtariProcess:
        """This many emulators; in a process of their own if there are turns to take and Python is to drive them."""
        if turns is None or self.in_graph or os.name != "posix":
            return AtariPool(self.options, seeds)
        return AtariProcess(self.options, seeds, turns)

    def raw(self) -> Raw:
        """The shapes of what one emulator says."""
        given = self.options
        frame = jax.ShapeDtypeStruct((1, given.size, given.size), jnp.uint8)
        return Raw(frame=frame, news=jax.ShapeDtypeStruct((4,), jnp.int32))

    def read(self, state: Seen | None, raw: Raw) -> tuple[Seen, TimeStep]:
        """A game begins with its first frame and nothing before it, as the emulator itself stacks."""
        frame, over = jnp.moveaxis(raw.frame, 0, -1), raw.terminated | raw.truncated
        if state is None:
            lost = jnp.zeros((), dtype=bool)
            older = jnp.zeros((*frame.shape[:-1], self.stack - 1), dtype=frame.dtype)
        else:
            lost = raw.lives < state.lives
            older = jnp.where(state.over, jnp.zeros_like(state.frames), state.frames)
        pixels = jnp.concatenate([older, frame], axis=-1)
        score = raw.reward.astype(float)
        ends = raw.terminated | lost if self.end_at_life_loss else raw.terminated
        return Seen(raw.lives, over, pixels[..., 1:]), TimeStep(
            observation=PixelObservation(pixels, jnp.zeros((0,), dtype=bool)),
            legal=jnp.ones((self.num_actions,), dtype=bool),
            reward=jnp.sign(score) if self.clip_rewards else score,
            terminated=ends,
            truncated=raw.truncated & ~ends,
            over=over,
            score=score,
        )
