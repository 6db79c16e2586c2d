"""`paircredit queue`: what the reproduction still asks of a GPU, and making as much of it as there is time for."""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from paircredit.commands import parse_options
from paircredit.commands.runs import resumable
from paircredit.errors import PaircreditError

if TYPE_CHECKING:
    from paircredit.studies.queue import Entry


@dataclasses.dataclass(frozen=True)
class QueueOptions:
    """List what the reproduction still asks of a GPU, most valuable first; with --minutes, make it from the top.

    What is finished is digested and never made twice; what is stopped goes on at the next call in the same folder.
    """

    minutes: float | None = None
    """Make entries for this long; what is not finished then is stopped and can be gone on with."""
    out: Path = Path("runs/queue")
    """Folder for runs and digests."""
    kept: Path | None = None
    """Folder of digests that are kept: an entry with a digest there is done. (At scale paper: results.)"""
    only: tuple[str, ...] | None = None
    """Names of entries; all of them otherwise."""
    scale: str = "paper"
    """smoke: seconds instead of minutes, to see that everything works."""


def run(words: list[str]) -> int:
    """`paircredit queue`."""
    options = parse_options(QueueOptions, words, "paircredit queue")
    from paircredit.errors import unknown_name
    from paircredit.studies.queue import QUEUE, standing

    names = [entry.name for entry in QUEUE]
    for name in options.only or ():
        if name not in names:
            raise unknown_name("entry of the queue", name, names)
    if options.minutes is not None and not 0 < options.minutes < float("inf"):
        raise PaircreditError(f"--minutes is {options.minutes:g}, but must be more than 0.")
    chosen = [entry for entry in QUEUE if not options.only or entry.name in options.only]
    kept = options.kept or (Path("results") if options.scale == "paper" else options.out / "digests")
    if options.minutes is not None:
        _make(chosen, options, kept)
    found = [standing(entry, options.scale, options.out, kept) for entry in chosen]
    if options.minutes is None:
        for one in found:
            state = str(one.kept) if one.kept else f"{one.made} of {one.runs} runs"
            print(f"{one.entry.name:<40} {one.entry.minutes:>3} min  {one.entry.decides:<18} {state}")
            print(f"    {one.entry.question}")
    left = [one.entry for one in found if one.kept is None]
    if left:
        minutes = sum(entry.minutes for entry in left)
        print(f"{len(left)} of {len(found)} left, {minutes} minutes; next: {left[0].name}.")
    else:
        print(f"All {len(found)} entries are done.")
    return 0


def _make(chosen: Sequence[Entry], options: QueueOptions, kept: Path) -> None:
    """Entries from the top until the time is over; each leaves a digest when its last run is finished."""
    from paircredit.console import ProgressBars
    from paircredit.experiments.reproduce import reproduce_side_by_side
    from paircredit.report import write_digest
    from paircredit.runs import find_runs
    from paircredit.studies import judge_all
    from paircredit.studies.queue import standing

    until = time.monotonic() + 60 * (options.minutes or 0)
    for entry in chosen:
        if standing(entry, options.scale, options.out, kept).kept is not None:
            continue
        folder, digests = options.out / "runs" / entry.name, options.out / "digests"
        with resumable(options.out), ProgressBars(entry.name, len(entry.runs(options.scale))) as bars:
            in_time = reproduce_side_by_side(
                entry.make(options.scale), folder, entry.side_by_side, bars, entry.only, until=until
            )
        if not in_time:
            print(f"The time is over; {entry.name} can be gone on with in {options.out}.", file=sys.stderr)
            return
        runs = find_runs(folder)
        write_digest(runs, judge_all(runs), digests / entry.name)
        print(f"{entry.name} is finished; its digest is {digests / entry.name}")
