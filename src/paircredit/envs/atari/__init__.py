"""Atari games, emulated on the host by the Arcade Learning Environment."""

from paircredit.envs.atari.environment import AtariConfig
from paircredit.envs.atari.games import GAMES

__all__ = ["GAMES", "AtariConfig"]
