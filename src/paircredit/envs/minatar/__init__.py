"""MinAtar's five games: Atari in small, 10×10 pictures with one channel per kind of thing."""
