"""Progress bars for people, one line per run for logs."""

from __future__ import annotations

import time

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


class ProgressBars:
    """A bar for all runs and one for the current run; on a terminal that cannot show bars, a line per finished run."""

    def __init__(self, title: str, runs: int) -> None:
        """Start with the number of runs to come."""
        self._console = Console(stderr=True)
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
            transient=True,
        )
        self._whole = self._bars.add_task(title, total=runs)
        self._runs, self._done = runs, 0
        self._current: TaskID | None = None
        self._began = 0.0

    def __enter__(self) -> ProgressBars:
        """Show the bars."""
        self._bars.start()
        return self

    def __exit__(self, *exception: object) -> None:
        """Take them away."""
        self._bars.stop()

    def begin(self, name: str, total: int) -> None:
        """A run begins."""
        self._began = time.monotonic()
        self._current = self._bars.add_task(f"  {name}", total=total)

    def advance(self, steps: int) -> None:
        """Some of its steps are done."""
        if self._current is not None:
            self._bars.advance(self._current, steps)

    def end(self, note: str) -> None:
        """The run is done."""
        if self._current is not None:
            self._bars.remove_task(self._current)
        self._done += 1
        self._bars.advance(self._whole)
        seconds = time.monotonic() - self._began
        self._console.print(f"[{self._done}/{self._runs}] {note} ({seconds:.1f} s)", markup=False, highlight=False)
