"""The settings of a MinAtar game."""

from __future__ import annotations

import dataclasses
from typing import Literal, get_args

from paircredit.envs.minatar.asterix import Asterix
from paircredit.envs.minatar.breakout import Breakout
from paircredit.envs.minatar.environment import NO_BOUND, Game, MinAtar
from paircredit.envs.minatar.freeway import Freeway
from paircredit.envs.minatar.seaquest import Seaquest
from paircredit.envs.minatar.space_invaders import SpaceInvaders
from paircredit.envs.segments import InSegments
from paircredit.errors import PaircreditError, unknown_name

GameName = Literal["asterix", "breakout", "freeway", "seaquest", "space_invaders"]

GAMES: dict[GameName, str] = {
    "asterix": "collect gold, keep away from enemies",
    "breakout": "keep a ball in play and break bricks with it",
    "freeway": "cross a road of eight lanes again and again",
    "seaquest": "shoot fish and submarines, save divers, mind the oxygen",
    "space_invaders": "shoot aliens before they arrive",
}
"""The games and one line about each."""


@dataclasses.dataclass(frozen=True)
class MinAtarConfig:
    """Settings of a MinAtar game; rollouts are segments of its episodes."""

    game: GameName = "breakout"
    """Which of the five games."""
    sticky_action_probability: float = 0.1
    """Probability that the last action is repeated (the original's default)."""
    difficulty_ramping: bool = True
    """Asterix, Seaquest and Space Invaders become harder with time (the original's default)."""
    steps: int = 20
    """Steps of a segment (paper, Atari: rollouts of 20 steps)."""

    def build(self) -> InSegments:
        if self.game not in get_args(GameName):
            raise unknown_name("MinAtar game", self.game, get_args(GameName))
        if not 0 <= self.sticky_action_probability <= 1:
            raise PaircreditError(
                f"sticky_action_probability is {self.sticky_action_probability}, but is a probability: 0 to 1."
            )
        if self.steps < 1:
            raise PaircreditError(f"steps is {self.steps}, but a segment has at least 1.")
        if self.steps > NO_BOUND:
            raise PaircreditError(f"steps is {self.steps:,}, but a segment has at most {NO_BOUND:,}.")
        return InSegments(MinAtar(self.sticky_action_probability, self._rules()), self.steps)

    def _rules(self) -> Game:
        ramping = self.difficulty_ramping
        rules: dict[GameName, Game] = {
            "asterix": Asterix(ramping),
            "breakout": Breakout(),
            "freeway": Freeway(),
            "seaquest": Seaquest(ramping),
            "space_invaders": SpaceInvaders(ramping),
        }
        return rules[self.game]
