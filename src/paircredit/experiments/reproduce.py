"""Making an experiment in one folder, its runs one after another or side by side; going on with what was stopped."""

from __future__ import annotations

import contextlib
import dataclasses
import fnmatch
import glob
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from paircredit.errors import PaircreditError, unknown_name
from paircredit.experiments.diagnostic_runs import run_credit, run_umbrella_variance
from paircredit.experiments.spec import (
    CreditSpec,
    Experiment,
    RunSpec,
    TrainingSpec,
    as_json,
    from_json,
    kind_of,
    resolve,
)
from paircredit.experiments.training_run import Progress, Silent, run_training
from paircredit.runs.files import PARTIAL, exists_already, make_folder
from paircredit.runs.folder import finished_already
from paircredit.runs.manifest import FORMAT, MANIFEST, NamedSpec, first_difference, manifest_bytes, read_manifest
from paircredit.runs.read import refuse_headless_runs, run_folders

EXPERIMENT = "experiment.json"
"""The list of an experiment's runs, in its folder."""
SECONDS_BETWEEN_LOOKS = 0.2
NO_SHARE_TAKEN_AHEAD = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
"""A process would take three quarters of a GPU's memory at its start, unless it is told not to."""


@dataclasses.dataclass(frozen=True)
class _RunShape:
    kind: str
    spec: NamedSpec


@dataclasses.dataclass(frozen=True)
class _ExperimentShape:
    """The fields of an experiment's list of runs."""

    name: str
    scale: str
    runs: tuple[_RunShape, ...]


def reproduce(experiment: Experiment, folder: Path, progress: Progress | None = None, only: Sequence[str] = ()) -> None:
    """Make all runs of an experiment; those that are finished already are skipped, one that was stopped goes on.

    Args:
        experiment: what to run.
        folder: a new one, or that of the same experiment; each run gets a folder in it. Several processes may make
            different runs in the same folder.
        progress: is told how it goes.
        only: patterns; the runs are made whose names fit one of them, or all where there are none.
    """
    for spec in open_experiment(experiment, folder, only):
        run_one(spec, folder, progress or Silent())


def weights_used(spec: RunSpec) -> set[str]:
    """The runs (or files) whose weights a run uses."""
    return {value for name, value in as_json(spec).items() if name.endswith("weights_from") and value is not None}


def refuse_missing_weights(experiment: Experiment, runs: Sequence[RunSpec], folder: Path) -> None:
    """Refuse some runs of an experiment that use weights of others of its runs, which are not there."""
    others = {spec.name: spec for spec in experiment.runs} | dict.fromkeys(spec.name for spec in runs)
    for spec in runs:
        for source in weights_used(spec):
            other = others.get(source)
            if other is not None and not is_finished(other, folder):
                raise PaircreditError(f"{spec.name} uses the weights of {source}; make that run first, or name both.")


def open_experiment(experiment: Experiment, folder: Path, only: Sequence[str]) -> list[RunSpec]:
    """The runs that are to be made; their folder is made, or is there already and must be of the same experiment."""
    chosen = choose_runs(experiment, only)
    refuse_missing_weights(experiment, chosen, folder)
    content = _as_json(experiment)
    if not folder.exists():
        # What is not installed is refused before there is a folder.
        for spec in {spec.env: spec for spec in experiment.runs if isinstance(spec, TrainingSpec)}.values():
            next(resolve(spec))
        try:
            make_folder(folder, {EXPERIMENT: manifest_bytes(content)})
        except PaircreditError:
            if not (folder / EXPERIMENT).exists():  # another process has begun at the same time
                raise
    if not (folder / EXPERIMENT).exists():
        raise exists_already(folder)
    there = _as_json(read_experiment(folder))
    if difference := first_difference(*(json.loads(json.dumps(listed)) for listed in (there, content))):
        raise PaircreditError(
            f"{folder} exists already and holds another experiment ({difference}); choose another folder or remove "
            "it first."
        )
    return chosen


def choose_runs(experiment: Experiment, only: Sequence[str] = ()) -> list[RunSpec]:
    """The runs whose names fit a pattern, as file names do (`catch*`); all where there is none. Each must fit a run."""
    names = [spec.name for spec in experiment.runs]
    for pattern in only:
        if not fnmatch.filter(names, pattern):
            raise unknown_name(f"run of {experiment.name} at scale {experiment.scale}", pattern, names)
    fits = {name for pattern in only or ("*",) for name in fnmatch.filter(names, pattern)}
    return [spec for spec in experiment.runs if spec.name in fits]


def is_finished(spec: RunSpec, folder: Path) -> bool:
    """Whether the run is in the folder, made as the spec says."""
    return finished_already(folder / spec.name, kind_of(spec), as_json(spec))


def run_one(spec: RunSpec, folder: Path, progress: Progress) -> None:
    """Make one run, unless it is there; if it was stopped, go on with it."""
    if is_finished(spec, folder):
        progress.skip(spec.name)
    elif isinstance(spec, TrainingSpec):
        run_training(spec, folder, progress)
    elif isinstance(spec, CreditSpec):
        run_credit(spec, folder, progress)
    else:
        run_umbrella_variance(spec, folder, progress)


def read_experiment(folder: Path) -> Experiment:
    """The experiment that a folder was made for."""
    what = "the list of the runs of an experiment"
    there = read_manifest(folder / EXPERIMENT, what, _ExperimentShape)
    runs = tuple(from_json(run["kind"], run["spec"]) for run in there["runs"])
    for spec in runs:
        if spec.name in ("", "..") or spec.name != Path(spec.name).name:
            raise PaircreditError(
                f"{folder / EXPERIMENT} has a run called {spec.name!r}, which is no name of a folder."
            )
    return Experiment(there["name"], there["scale"], runs)


def runs_to_resume(path: Path) -> list[tuple[RunSpec, Path]]:
    """All runs in a run folder, or in a folder of experiments and runs, in the order in which to make them.

    With each comes the folder that its own is in; finished ones are among them, to be skipped.
    """
    if not path.is_dir():
        raise PaircreditError(f"There is no folder {path}.")
    if (path / MANIFEST).exists():
        return [_run_to_resume(path)]
    refuse_headless_runs(path)
    experiments = sorted(file.parent for file in path.rglob(EXPERIMENT) if not file.parent.name.endswith(PARTIAL))
    jobs = [(spec, folder) for folder in experiments for spec in read_experiment(folder).runs]
    jobs += [_run_to_resume(run) for run in run_folders(path) if run.parent not in experiments]
    if not jobs:
        raise PaircreditError(f"There are no runs in {path}, so there is nothing to go on with.")
    return jobs


def _run_to_resume(path: Path) -> tuple[RunSpec, Path]:
    manifest = read_manifest(path / MANIFEST)
    spec = from_json(manifest["kind"], manifest["spec"])
    path = path.resolve() if path.name in ("", "..") else path
    if path.name != spec.name:
        raise PaircreditError(f"The folder {path} holds a run called {spec.name!r}; give it its name back to go on.")
    return spec, path.parent


def _as_json(experiment: Experiment) -> dict[str, Any]:
    runs = [{"kind": kind_of(spec), "spec": as_json(spec)} for spec in experiment.runs]
    return {"format": FORMAT, "name": experiment.name, "scale": experiment.scale, "runs": runs}


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
    """As `reproduce`, several runs at a time, each in a process of its own: one run seldom fills a GPU.

    A run is made by `paircredit reproduce --only NAME`, or by the command that is given for its name; one whose weights
    come from another run waits for it. Where a run fails, those beside it are finished, and no other one is begun.
    What is not made until a time of the monotonic clock is stopped as by Ctrl-C, and the answer is False.
    """
    chosen = open_experiment(experiment, folder, only)
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
