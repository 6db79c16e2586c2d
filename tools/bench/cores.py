"""Which threads of this program have the cores, as Linux counts, and which of the processes that work for it."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Iterable
from pathlib import Path

_PROCESSES = Path("/proc")


@dataclasses.dataclass(frozen=True)
class Work:
    """What threads had done at some moment.

    Attributes:
        at: when, in seconds.
        all: seconds on a core of this process, threads that have ended included.
        own: threads of this process.
        seconds: by thread, on a core.
        kinds: by thread, what it is: `emulators`, which stand back after all others, or its name.
    """

    at: float
    all: float
    own: set[int]
    seconds: dict[int, float]
    kinds: dict[int, str]


def work_so_far(helpers: Iterable[int] = ()) -> Work:
    """Of all threads of this process and of others that work for it; of none where the system does not tell.

    Args:
        helpers: numbers of the other processes.
    """
    own = _threads(os.getpid())
    others = [thread for process in helpers for thread in _threads(process)]
    found = {int(task.name): read for task in (*own, *others) if (read := _read(task))}
    urgency = found[os.getpid()][2] if os.getpid() in found else None
    kinds = {thread: name if rank == urgency else "emulators" for thread, (name, _, rank) in found.items()}
    seconds = {thread: seconds for thread, (_, seconds, _) in found.items()}
    return Work(time.perf_counter(), time.process_time(), {int(task.name) for task in own}, seconds, kinds)


def cores_between(before: Work, after: Work) -> dict[str, float]:
    """How many cores each kind of thread had on average, the busiest first, `ended` being those that are no more.

    Nothing where the system does not tell, or no thread stands back, so that emulators cannot be told from the others.
    """
    if "emulators" not in after.kinds.values():
        return {}
    passed = after.at - before.at
    cores = {"ended": (after.all - before.all) / passed}
    for thread, seconds in after.seconds.items():
        had = (seconds - before.seconds.get(thread, 0.0)) / passed
        cores[after.kinds[thread]] = cores.get(after.kinds[thread], 0.0) + had
        cores["ended"] -= had if thread in after.own else 0.0
    cores["ended"] = max(cores["ended"], 0.0)  # threads are counted in hundredths of a second
    return dict(sorted(cores.items(), key=lambda item: -item[1]))


def _threads(process: int) -> list[Path]:
    try:
        return list((_PROCESSES / str(process) / "task").iterdir())
    except OSError:
        return []


def _read(task: Path) -> tuple[str, float, tuple[str, str]] | None:
    """Name, seconds, and niceness with policy of a thread, unless it has ended meanwhile."""
    try:
        text = (task / "stat").read_text()
    except OSError:
        return None
    start, end = text.index("("), text.rindex(")")  # a name may hold anything
    fields = text[end + 2 :].split()
    ticks = int(fields[11]) + int(fields[12])
    return text[start + 1 : end], ticks / os.sysconf("SC_CLK_TCK"), (fields[16], fields[38])
