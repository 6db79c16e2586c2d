"""Pools take turns at the cores, so that their groups do not all wait for the device at the same time."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator


class Turns:
    """So many pools step at a time; the others follow in the order in which they have asked.

    A pool alone cannot keep the cores busy: at the end of a step they wait for its last emulators, above all for one
    that begins a game. Pools that all step side by side are done at about the same time, and then all their groups want
    the device at once.

    A turn is a byte in a pipe, so that pools may be in processes of their own: these inherit its two ends.

    Attributes:
        ends: of the pipe, as numbers of open files: where turns are taken, and where they are passed on.
    """

    def __init__(self, at_a_time: int) -> None:
        """None steps.

        Args:
            at_a_time: how many may.
        """
        self.ends = os.pipe()
        os.write(self.ends[1], bytes(at_a_time))

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        """Wait for a turn; the next one gets it when this is left, in whichever way."""
        os.read(self.ends[0], 1)
        try:
            yield
        finally:
            self.pass_on()

    def pass_on(self) -> None:
        """Let another pool step, in the place of one that does not any more."""
        os.write(self.ends[1], bytes(1))

    def close(self) -> None:
        """Once no pool is there any more."""
        for end in self.ends:
            os.close(end)


def pools_at_a_time(pools: int) -> int:
    """More than half of so many: these fill the cores, and the others are out of step with them."""
    return pools // 2 + 1
