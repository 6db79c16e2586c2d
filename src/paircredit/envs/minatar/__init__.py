"""MinAtar's five games: Atari in small, 10×10 pictures with one channel per kind of thing."""

from paircredit.envs.minatar.config import GAMES, GameName, MinAtarConfig
from paircredit.envs.minatar.environment import Game, MinAtar, MinAtarState

__all__ = ["GAMES", "Game", "GameName", "MinAtar", "MinAtarConfig", "MinAtarState"]
