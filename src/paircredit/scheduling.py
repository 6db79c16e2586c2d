"""Which threads get the cores, on Linux: some stand back, and those of several pools share the cores in whole steps.

Everywhere else nothing is done. No JAX is imported here: processes of emulators, which are there at once, use it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import struct
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

ONLY_WHEN_IDLE = 20
"""A niceness beyond those that Linux has: its scheduling class for what runs only where nothing else wants the core."""
LONGEST_SLICE = 100_000_000
"""Nanoseconds for which Linux may be asked to leave a thread on its core; before 6.12 it pays no attention."""
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274, "riscv64": 274}
"""By machine, the number of the call to Linux that says for how long; Python has no name for it."""


def share_cores(threads: Sequence[int]) -> None:
    """Threads of a pool share the cores with those of other pools so that none is stopped in the midst of a step.

    Left to itself Linux lets threads take turns on a core every few milliseconds. A pool waits for all its emulators,
    so one that is stopped in a step holds up the others; and pools that are done at the same time leave the cores to
    nobody. If there is a thread for every core, each is kept on its own: no core is idle while two threads wait for
    another.
    """
    if sys.platform != "linux":
        return
    number, cores = _SCHED_SETATTR.get(platform.machine()), sorted(os.sched_getaffinity(0))
    for index, thread in enumerate(threads):
        if len(threads) == len(cores):
            os.sched_setaffinity(thread, {cores[index]})
        if number is not None:
            policy, niceness = os.sched_getscheduler(thread), os.getpriority(os.PRIO_PROCESS, thread)
            said = struct.pack("=IIQiIQQQ", 48, os.SCHED_BATCH, 0, niceness, 0, LONGEST_SLICE, 0, 0)
            ctypes.CDLL(None).syscall(number, thread, said, 0)  # a wish: where it is refused, all goes on as it was
            if policy == os.SCHED_IDLE:
                os.sched_setscheduler(thread, policy, os.sched_param(0))


def own_threads() -> set[int]:
    """Those of this process, as Linux numbers them."""
    return {int(name) for name in os.listdir("/proc/self/task")} if sys.platform == "linux" else set()


def less_urgently(make: Callable[[], Any], niceness: int) -> Any:
    """Make something whose threads stand back, on Linux, where they inherit this from the thread that makes them."""

    def work() -> Any:
        if sys.platform == "linux" and niceness:
            with contextlib.suppress(OSError):  # it stands back further already
                own = threading.get_native_id()
                if niceness == ONLY_WHEN_IDLE:
                    os.sched_setscheduler(own, os.SCHED_IDLE, os.sched_param(0))
                else:
                    os.setpriority(os.PRIO_PROCESS, own, max(niceness, os.getpriority(os.PRIO_PROCESS, own)))
        return make()

    with ThreadPoolExecutor(1) as executor:
        return executor.submit(work).result()
