"""Atari games, emulated on the host by the Arcade Learning Environment."""

from paircredit.envs.atari.config import AtariConfig
from paircredit.envs.atari.environment import Atari
from paircredit.envs.atari.games import GAMES, Reference

__all__ = ["GAMES", "Atari", "AtariConfig", "Reference"]
