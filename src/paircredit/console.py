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

SECONDS_BETWEEN_LINES = 60.0
"""In a log, numbers of a run in progress are told this often."""


class ProgressBars:
    """A bar for all runs and one for the current run; on a terminal that cannot show bars, a line per finished run."""

    def __init__(self, title: str, runs: int) -> None:
        self._console = Console(stderr=True)
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[numbers]}"),
            console=self._console,
            disable=not self._console.is_terminal,
            transient=True,
        )
        self._whole = self._bars.add_task(title, total=runs, numbers="")
        self._runs, self._done = runs, 0
        self._current: TaskID | None = None
        self._began = 0.0
        self._told = time.monotonic()

    def __enter__(self) -> ProgressBars:
        self._bars.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._bars.stop()

    def begin(self, name: str, total: int, done: int = 0) -> None:
        """A run begins, or goes on where it was."""
        self._began = time.monotonic()
        self._current = self._bars.add_task(f"  {name}", total=total, completed=done, numbers="")
        if done:
            self.say(f"{name} goes on after {done} of {total}.")

    def advance(self, steps: int) -> None:
        if self._current is not None:
            self._bars.advance(self._current, steps)

    def tell(self, numbers: str) -> None:
        """The newest numbers beside the bar; in a log, a line now and then."""
        self._bars.update(self._whole if self._current is None else self._current, numbers=numbers)
        now = time.monotonic()
        if not self._console.is_terminal and now - self._told >= SECONDS_BETWEEN_LINES:
            self._told = now
            task = self._bars.tasks[-1]
            self.say(f"{task.description.strip()}: {task.completed:.0f} of {task.total:.0f}, {numbers}")

    def end(self, note: str) -> None:
        if self._current is not None:
            self._bars.remove_task(self._current)
        self._count(f"{note} ({time.monotonic() - self._began:.1f} s)")

    def skip(self, name: str) -> None:
        self._count(f"{name} (finished already)")

    def made(self, note: str) -> None:
        self._count(note)

    def say(self, sentence: str) -> None:
        """A line of its own."""
        self._console.print(sentence, markup=False, highlight=False, soft_wrap=True)

    def _count(self, line: str) -> None:
        self._done += 1
        self._bars.advance(self._whole)
        self.say(f"[{self._done}/{self._runs}] {line}")
