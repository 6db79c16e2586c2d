"""The settings of an Atari game."""

from __future__ import annotations

import dataclasses
from typing import Literal, get_args

import jax

from paircredit.envs.atari.emulators import Options
from paircredit.envs.atari.environment import Atari
from paircredit.envs.atari.pool import count_actions
from paircredit.errors import PaircreditError, unknown_name
from paircredit.scheduling import ONLY_WHEN_IDLE

Rollouts = Literal["auto", "in-graph", "host"]
_LARGEST = 2**31 - 1
"""The emulator counts with 32 bits."""
BOUNDS = {
    "steps": (1, _LARGEST),
    "groups": (1, _LARGEST),
    "frame_skip": (1, _LARGEST),
    "stack": (1, 256),
    "size": (8, 1024),
    "most_frames": (1, _LARGEST),
    "most_noops": (0, 10_000),
    "threads": (0, _LARGEST),
    "niceness": (0, ONLY_WHEN_IDLE),
}
"""The least and the most of every whole number; larger pictures or waits would only look as if nothing happened."""


@dataclasses.dataclass(frozen=True)
class AtariConfig:
    """An Atari game, in segments. Defaults are those of the old baselines (NoFrameskip-v4), but for no-ops and fire."""

    game: str = "pong"
    """Name of the game, as in ms_pacman."""
    sticky_action_probability: float = 0.0
    """Probability that an emulator repeats the last action, whatever was chosen (0.25 in newer work)."""
    most_noops: int = 30
    """A game begins with up to this many frames of doing nothing (0 to 30; the old baselines drew 1 to 30)."""
    frame_skip: int = 4
    """Frames per step: the action is repeated, rewards are summed, the last two frames are laid over each other."""
    size: int = 84
    """Rows and columns of a picture, in shades of grey."""
    stack: int = 4
    """Frames in an observation."""
    fire_at_start: bool = True
    """Press fire at the start of a game that waits for it (not after a lost life)."""
    most_frames: int = 108_000
    """A game is cut after this many frames: half an hour."""
    all_actions: bool = False
    """All 18 actions, instead of those that the game knows."""
    end_at_life_loss: bool = True
    """For learning, an episode ends where a life is lost; the game goes on, and its score is that of the whole game."""
    clip_rewards: bool = True
    """Learn from the sign of rewards; scores are as the game counts."""
    steps: int = 20
    """Steps of a segment (paper: rollouts of 20 steps)."""
    rollouts: Rollouts = "auto"
    """Emulators are stepped from within a compiled rollout (in-graph), or by the host between compiled steps, so that
    a GPU can learn meanwhile; auto: in-graph on a CPU, host on a GPU."""
    groups: int = 4
    """Members are trained in up to this many groups that do not wait for each other: some act while others learn."""
    threads: int = 0
    """Of the emulators of a group; 0: one per core."""
    niceness: int = 10
    """How far emulators stand back from what keeps them supplied, on Linux: 0 (not at all) to 19, or 20: they run only
    where nothing else wants the core."""

    def build(self) -> Atari:
        """The game; refuses bad settings, and says what to install where something is missing."""
        self._check()
        options = Options(
            game=self.game,
            sticky_action_probability=float(self.sticky_action_probability),
            most_noops=self.most_noops,
            frame_skip=self.frame_skip,
            size=self.size,
            fire_at_start=self.fire_at_start,
            most_frames=self.most_frames,
            all_actions=self.all_actions,
            threads=self.threads,
            niceness=self.niceness,
        )
        in_graph = self.rollouts == "in-graph" or (self.rollouts == "auto" and jax.default_backend() == "cpu")
        return Atari(
            options=options,
            num_actions=count_actions(self.game, self.all_actions),
            stack=self.stack,
            steps=self.steps,
            clip_rewards=self.clip_rewards,
            end_at_life_loss=self.end_at_life_loss,
            in_graph=in_graph,
            most_groups=self.groups,
        )

    def _check(self) -> None:
        if self.rollouts not in get_args(Rollouts):
            raise unknown_name("kind of rollouts", self.rollouts, get_args(Rollouts))
        if not 0 <= self.sticky_action_probability <= 1:
            raise PaircreditError(
                f"sticky_action_probability is {self.sticky_action_probability}, but is a probability: 0 to 1."
            )
        for name, (least, most) in BOUNDS.items():
            number = getattr(self, name)
            if number < least:
                raise PaircreditError(f"{name} is {number}, but must be at least {least}.")
            if number > most:
                raise PaircreditError(f"{name} is {number:,}, but must be at most {most:,}.")
