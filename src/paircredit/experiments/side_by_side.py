"""Runs of an experiment side by side, each in a process of its own: one run seldom fills a GPU."""

from __future__ import annotations

import contextlib
import glob
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from paircredit.errors import PaircreditError
from paircredit.experiments.progress import Progress
from paircredit.experiments.reproduce import (
    choose_runs,
    is_finished,
    open_experiment,
    refuse_missing_weights,
    weights_used,
)
from paircredit.experiments.spec import Experiment

SECONDS_BETWEEN_LOOKS = 0.2
NO_SHARE_TAKEN_AHEAD = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
"""A process would take three quarters of a GPU's memory at its start, unless it is told not to."""


class _Running:
    """A process that makes a run."""

    def __init__(self, words: Sequence[str]) -> None:
        self.began, self._said = time.monotonic(), tempfile.TemporaryFile()  # noqa: SIM115 (closed at the end)
        # In a session of its own: who presses Ctrl-C interrupts this process, and this process the others, once.
        self.process = subprocess.Popen(
            words,
            stdout=subprocess.DEVNULL,
            stderr=self._said,
            env=NO_SHARE_TAKEN_AHEAD | dict(os.environ),
            start_new_session=True,
        )

    def close(self) -> None:
        """Wait for its end, and let go of what it said."""
        self.process.wait()
        self._said.close()

    def last_words(self) -> str:
        """The last line that it has said."""
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").strip().splitlines()
        return lines[-1].removeprefix("paircredit: ") if lines else f"it ended with code {self.process.returncode}."


def reproduce_side_by_side(
    experiment: Experiment,
    folder: Path,
    workers: int,
    progress: Progress,
    only: Sequence[str] = (),
    command: Callable[[str], Sequence[str]] | None = None,
    until: float = math.inf,
) -> bool:
    """As `reproduce`, several runs at a time. A run whose weights come from another one waits for it.

    A run is made by `paircredit reproduce --only NAME`, or by the command that is given for its name. What is not made
    `until` then, a time of the monotonic clock, is stopped as by Ctrl-C and can be gone on with.

    Returns:
        Whether all runs were made in time.

    Raises:
        PaircreditError: a run failed; those beside it were finished, and no other one was begun.
    """
    chosen = choose_runs(experiment, only)
    refuse_missing_weights(experiment, chosen, folder)
    open_experiment(experiment, folder)
    again = ["reproduce", experiment.name, "--scale", experiment.scale, "--out", str(folder), "--only"]
    words = command or (lambda name: [sys.executable, "-m", "paircredit", *again, glob.escape(name)])
    waiting = [spec for spec in chosen if not is_finished(spec, folder)]
    for spec in chosen:
        if spec not in waiting:
            progress.skip(spec.name)
    running: dict[str, _Running] = {}
    failed: list[str] = []
    with _all_stopped_at_the_end(running):
        while running or (waiting and not failed):
            if time.monotonic() >= until:
                return False
            unfinished = {spec.name for spec in waiting} | running.keys()
            ready = [spec for spec in waiting if not failed and not weights_used(spec) & unfinished]
            for spec in ready[: workers - len(running)]:
                waiting.remove(spec)
                running[spec.name] = _Running(words(spec.name))
            for name in [name for name, run in running.items() if run.process.poll() is not None]:
                with contextlib.closing(running.pop(name)) as run:
                    if run.process.returncode == 0:
                        progress.made(f"{name} ({time.monotonic() - run.began:.1f} s)")
                    else:
                        failed.append(f"{name}: {run.last_words()}")
            progress.tell(", ".join(running))
            time.sleep(SECONDS_BETWEEN_LOOKS)
    if failed:
        raise PaircreditError(f"{len(failed)} of {len(chosen)} runs failed; {' '.join(failed)}")
    return True


@contextlib.contextmanager
def _all_stopped_at_the_end(running: dict[str, _Running]) -> Iterator[None]:
    """Whatever happens, no process is left behind; an interrupted run can be resumed."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        for run in running.values():
            run.process.send_signal(signal.SIGINT)
        for run in running.values():
            run.close()
        signal.signal(signal.SIGTERM, before)
