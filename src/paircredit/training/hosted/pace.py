"""Groups keep abreast of each other, so that all of them come to the end of a chunk at about the same time."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable

SECONDS_BETWEEN_LOOKS = 0.05


class Pace:
    """How far groups are. One that is too far ahead waits for the slowest, which has the cores for itself meanwhile.

    Emulators of several pools share the cores as it happens. Left alone, one group may be done with a chunk when
    another has a third of it before it, and then too few emulators run to keep all cores busy.
    """

    def __init__(self, groups: int, lead: float) -> None:
        """None has gone a step.

        Args:
            groups: how many.
            lead: this many steps a group may be ahead of the slowest: enough that some can learn while others act.
        """
        self._steps, self._lead = [0.0] * groups, lead
        self._changed = threading.Condition()

    def begin(self) -> None:
        """All are abreast again."""
        self._steps = [0.0] * len(self._steps)

    def forward(self, group: int, steps: int, go_on: Callable[[], None]) -> None:
        """A group has gone this many steps; wait, if it is too far ahead.

        Args:
            group: number of the group.
            steps: that it has gone since it said so last.
            go_on: is called while waiting; raises where there is nothing to wait for any more.
        """
        with self._changed:
            self._steps[group] += steps
            self._changed.notify_all()
            while self._steps[group] > min(self._steps) + self._lead:
                self._changed.wait(SECONDS_BETWEEN_LOOKS)
                go_on()

    def leave(self, group: int) -> None:
        """A group is done, or has failed: nobody waits for it any more."""
        with self._changed:
            self._steps[group] = math.inf
            self._changed.notify_all()
