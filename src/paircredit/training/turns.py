"""Pools take turns at the cores, so that their groups do not all wait for the device at the same time."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Iterator, Sequence

EMULATORS_PER_CORE = 2
"""That may be due at the same time, so that no core is idle while the last ones of a pool finish."""


class Turns:
    """So many pools step at a time; the others follow in the order in which they have asked.

    Pools that step side by side share the cores and are done at about the same time. Then all their groups act on the
    device, and no emulator runs: groups that are abreast once stay so, and the cores are idle for as long as acting
    takes. One behind the other, the emulators of one group run while another one acts.
    """

    def __init__(self, at_a_time: int) -> None:
        """None steps.

        Args:
            at_a_time: how many may.
        """
        self._free, self._waiting, self._lock = at_a_time, deque[threading.Event](), threading.Lock()

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        """Wait for a turn; the next one gets it when this is left, in whichever way."""
        self._take()
        try:
            yield
        finally:
            self._pass_on()

    def _take(self) -> None:
        with self._lock:
            if self._free:
                self._free -= 1
                return
            called = threading.Event()
            self._waiting.append(called)
        called.wait()

    def _pass_on(self) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._free += 1


def pools_at_a_time(sizes: Sequence[int]) -> int:
    """Half of them, and at least two; more where they have too few emulators for all cores.

    Args:
        sizes: emulators of every pool.
    """
    enough = -(-EMULATORS_PER_CORE * (os.cpu_count() or 1) // min(sizes))
    return max(2, -(-len(sizes) // 2), enough)
