"""MinAtar's five games: Atari in small, 10×10 pictures with one channel per kind of thing."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Literal, get_args

from paircredit.envs.minatar.asterix import Asterix
from paircredit.envs.minatar.breakout import Breakout
from paircredit.envs.minatar.freeway import Freeway
from paircredit.envs.minatar.game import NO_BOUND, Game, MinAtar
from paircredit.envs.minatar.seaquest import Seaquest
from paircredit.envs.minatar.space_invaders import SpaceInvaders
from paircredit.envs.protocol import InSegments
from paircredit.errors import refuse_unknown
from paircredit.settings import check_all, setting

GameName = Literal["asterix", "breakout", "freeway", "seaquest", "space_invaders"]

GAMES: dict[GameName, tuple[Callable[[bool], Game], str]] = {
    "asterix": (Asterix, "collect gold, keep away from enemies"),
    "breakout": (lambda ramping: Breakout(), "keep a ball in play and break bricks with it"),
    "freeway": (lambda ramping: Freeway(), "cross a road of eight lanes again and again"),
    "seaquest": (Seaquest, "shoot fish and submarines, save divers, mind the oxygen"),
    "space_invaders": (SpaceInvaders, "shoot aliens before they arrive"),
}
"""The rules of every game, given whether it becomes harder, and one line about it."""


@dataclasses.dataclass(frozen=True)
class MinAtarConfig:
    """Settings of a MinAtar game; rollouts are segments of its episodes."""

    game: GameName = "breakout"
    """Which of the five games."""
    sticky_action_probability: float = setting(0.1, at_least=0, at_most=1)
    """Probability that the last action is repeated (the original's default)."""
    difficulty_ramping: bool = True
    """Asterix, Seaquest and Space Invaders become harder with time (the original's default)."""
    steps: int = setting(20, at_least=1, at_most=NO_BOUND)
    """Steps of a segment (paper, Atari: rollouts of 20 steps)."""

    def build(self) -> InSegments:
        refuse_unknown("MinAtar game", self.game, get_args(GameName))
        check_all(self, "minatar")
        rules, _ = GAMES[self.game]
        return InSegments(MinAtar(self.sticky_action_probability, rules(self.difficulty_ramping)), self.steps)
