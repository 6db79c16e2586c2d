"""Atari games, emulated on the host by the Arcade Learning Environment."""
