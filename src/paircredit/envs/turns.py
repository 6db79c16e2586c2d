"""Pools of emulators take turns at the cores, so that their groups do not all wait for the device at the same time."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator


class Turns:
    """Lets a fixed number of pools step at a time; the others follow in the order in which they have asked.

    A pool alone cannot keep the cores busy: at the end of a step they wait for its last emulators, above all for one
    that begins a game. Pools that all step side by side are done at about the same time, and then all their groups want
    the device at once.

    A turn is a byte in a pipe, so that pools may be in processes of their own: these inherit its two ends.

    Attributes:
        ends: the two ends of the pipe as numbers of open files: turns are taken from the first and given back to the
            second.
    """

    def __init__(self, at_a_time: int) -> None:
        """Open the pipe.

        Args:
            at_a_time: the number of pools that may step at the same time.
        """
        self.ends = os.pipe()
        os.write(self.ends[1], bytes(at_a_time))

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        """Wait for a turn, and give it back on leaving, also after an error."""
        os.read(self.ends[0], 1)
        try:
            yield
        finally:
            self.pass_on()

    def pass_on(self) -> None:
        """Give a turn back for another pool, also on behalf of a pool that died while it had one."""
        os.write(self.ends[1], bytes(1))

    def close(self) -> None:
        """Close the pipe, once no pool is left."""
        for end in self.ends:
            os.close(end)


def pools_at_a_time(pools: int) -> int:
    """How many of the pools should step at a time: just over half keep the cores busy while the others wait."""
    return pools // 2 + 1
