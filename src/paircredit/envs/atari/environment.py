"""An Atari game: its settings, and what a learner sees: lives, clipped rewards, pictures with the newest frame last."""

from __future__ import annotations

import dataclasses
import os
from typing import Literal, NamedTuple, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, UInt8

from paircredit.envs.atari.pool import AtariPool, AtariProcess, Raw, count_actions
from paircredit.envs.hosted import Hosted, Turns
from paircredit.envs.protocol import EnvSpec, Pixels
from paircredit.errors import refuse_unknown
from paircredit.scheduling import ONLY_WHEN_IDLE
from paircredit.settings import check_all, setting
from paircredit.types import PixelObservation, TimeStep

Rollouts = Literal["auto", "in-graph", "host"]
_LARGEST = 2**31 - 1
"""The emulator counts with 32 bits."""


@dataclasses.dataclass(frozen=True)
class AtariConfig:
    """An Atari game, in segments. Defaults are those of the old baselines (NoFrameskip-v4), but for no-ops and fire."""

    game: str = "pong"
    """Name of the game, as in ms_pacman."""
    sticky_action_probability: float = setting(0.0, at_least=0, at_most=1)
    """Probability that an emulator repeats the last action, whatever was chosen (0.25 in newer work)."""
    most_noops: int = setting(30, at_least=0, at_most=10_000)
    """A game begins with up to this many frames of doing nothing (0 to 30; the old baselines drew 1 to 30)."""
    frame_skip: int = setting(4, at_least=1, at_most=_LARGEST)
    """Frames per step: the action is repeated, rewards are summed, the last two frames are laid over each other."""
    size: int = setting(84, at_least=8, at_most=1024)
    """Rows and columns of a picture, in shades of grey."""
    stack: int = setting(4, at_least=1, at_most=256)
    """Frames in an observation."""
    fire_at_start: bool = True
    """Press fire at the start of a game that waits for it (not after a lost life)."""
    most_frames: int = setting(108_000, at_least=1, at_most=_LARGEST)
    """A game is cut after this many frames: half an hour."""
    all_actions: bool = False
    """All 18 actions, instead of those that the game knows."""
    end_at_life_loss: bool = True
    """For learning, an episode ends where a life is lost; the game goes on, and its score is that of the whole game."""
    clip_rewards: bool = True
    """Learn from the sign of rewards; scores are as the game counts."""
    steps: int = setting(20, at_least=1, at_most=_LARGEST)
    """Steps of a segment (paper: rollouts of 20 steps)."""
    rollouts: Rollouts = "auto"
    """Emulators are stepped from within a compiled rollout (in-graph), or by the host between compiled steps, so that
    a GPU can learn meanwhile; auto: in-graph on a CPU, host on a GPU."""
    groups: int = setting(4, at_least=1, at_most=_LARGEST)
    """Members are trained in up to this many groups that do not wait for each other: some act while others learn."""
    threads: int = setting(0, at_least=0, at_most=_LARGEST)
    """Of the emulators of a group; 0: one per core."""
    niceness: int = setting(10, at_least=0, at_most=ONLY_WHEN_IDLE)
    """How far emulators stand back from what keeps them supplied, on Linux: 0 (not at all) to 19, or 20: they run only
    where nothing else wants the core."""

    def build(self) -> Atari:
        """The game; refuses bad settings, and says what to install where something is missing."""
        refuse_unknown("kind of rollouts", self.rollouts, get_args(Rollouts))
        check_all(self, "atari")
        return Atari(self, count_actions(self.game, self.all_actions))


class Seen(NamedTuple):
    """What is kept from one answer of an emulator to the next: the lives that were left, and all frames but the oldest.

    Where the game was `over`, the next answer begins another one.
    """

    lives: Int[Array, ""]
    over: Bool[Array, ""]
    frames: UInt8[Array, "H W older"]


class Atari(Hosted):
    """One of the games, in segments.

    Frames are stacked here and not by the emulator: a quarter of the bytes leaves the host.
    """

    config: AtariConfig = eqx.field(static=True)
    num_actions: int = eqx.field(static=True)

    @property
    def in_graph(self) -> bool:
        rollouts = self.config.rollouts
        return rollouts == "in-graph" or (rollouts == "auto" and jax.default_backend() == "cpu")

    @property
    def spec(self) -> EnvSpec:
        own = self.config
        return EnvSpec(
            name=f"atari/{own.game}",
            num_actions=self.num_actions,
            observation=Pixels(own.size, own.size, own.stack, 0, stacked=own.stack),
            horizon=own.steps,
            whole_episodes=False,
            frames_per_step=own.frame_skip,
        )

    def groups(self, members: int) -> int:
        """As few as have no larger group than the limit makes necessary: all wait for the largest one."""
        largest = -(-members // self.config.groups)
        return -(-members // largest)

    def open(self, seeds: np.ndarray, turns: Turns | None = None) -> AtariPool | AtariProcess:
        """This many emulators; in a process of their own if there are turns to take and Python is to drive them."""
        if turns is None or self.in_graph or os.name != "posix":
            return AtariPool(dataclasses.asdict(self.config), seeds)
        return AtariProcess(dataclasses.asdict(self.config), seeds, turns)

    def raw(self) -> Raw:
        frame = jax.ShapeDtypeStruct((1, self.config.size, self.config.size), jnp.uint8)
        return Raw(frame=frame, news=jax.ShapeDtypeStruct((4,), jnp.int32))

    def read(self, state: Seen | None, raw: Raw) -> tuple[Seen, TimeStep]:
        """A game begins with its first frame and nothing before it, as the emulator itself stacks."""
        frame, over = jnp.moveaxis(raw.frame, 0, -1), raw.terminated | raw.truncated
        if state is None:
            lost = jnp.zeros((), dtype=bool)
            older = jnp.zeros((*frame.shape[:-1], self.config.stack - 1), dtype=frame.dtype)
        else:
            lost = raw.lives < state.lives
            older = jnp.where(state.over, jnp.zeros_like(state.frames), state.frames)
        pixels = jnp.concatenate([older, frame], axis=-1)
        score = raw.reward.astype(float)
        ends = raw.terminated | lost if self.config.end_at_life_loss else raw.terminated
        return Seen(raw.lives, over, pixels[..., 1:]), TimeStep(
            observation=PixelObservation(pixels, jnp.zeros((0,), dtype=bool)),
            legal=jnp.ones((self.num_actions,), dtype=bool),
            reward=jnp.sign(score) if self.config.clip_rewards else score,
            terminated=ends,
            truncated=raw.truncated & ~ends,
            over=over,
            score=score,
        )
