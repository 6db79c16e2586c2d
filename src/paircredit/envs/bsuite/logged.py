"""Which episodes bsuite writes into its logs: about the same number in every decade."""

from __future__ import annotations

_FIRST_DECADE = tuple(range(1, 10))
_STEPS = (10, 12, 14, 17, 20, 25, 30, 40, 50, 60, 70, 80, 90)
"""Of every later decade, times a power of ten."""


def logged_episodes(total: int) -> list[int]:
    """The numbers of the logged episodes among the first `total`, counted from 1."""
    found, factor = [number for number in _FIRST_DECADE if number <= total], 1
    while 10 * factor <= total:
        found += [factor * step for step in _STEPS if factor * step <= total]
        factor *= 10
    return found
