"""`paircredit reproduce` and `resume`: the runs of experiments, and going on with what was stopped."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import tyro

from paircredit.commands.options import parse_options
from paircredit.commands.train import resumable, say_return
from paircredit.errors import PaircreditError


@dataclasses.dataclass(frozen=True)
class ReproduceOptions:
    """Make the runs of an experiment of the paper, in one folder; the same command again goes on where it stopped."""

    experiment: tyro.conf.Positional[str]
    """Name of the experiment: see `paircredit list`."""
    out: Path
    """Folder for the runs: a new one, or that of the same experiment, left unfinished."""
    scale: str = "short"
    """How much of it: smoke (seconds), short (minutes, for neural networks on a GPU), paper (as published)."""
    only: tuple[str, ...] | None = None
    """Names of runs, or patterns like 'catch*'; others are left for later, or for other processes and machines."""
    workers: int = 1
    """How many runs are made at a time, each in a process of its own: one run seldom fills a GPU."""


@dataclasses.dataclass(frozen=True)
class ResumeOptions:
    """Go on with what was stopped: a run, an experiment, or all of them in a folder."""

    folder: tyro.conf.Positional[Path]
    """A run folder, the folder of an experiment, or a folder with some of them."""


def reproduce(words: list[str]) -> int:
    if sum(word.split("=")[0] == "--only" for word in words) > 1:
        raise PaircreditError("--only is given more than once; give all names and patterns after one: --only A B.")
    options = parse_options(ReproduceOptions, words, "paircredit reproduce")
    from paircredit.console import ProgressBars
    from paircredit.experiments import reproduce as make_runs
    from paircredit.experiments.reproduce import choose_runs
    from paircredit.experiments.side_by_side import reproduce_side_by_side
    from paircredit.studies import make_experiment

    if options.only == ():
        raise PaircreditError("--only needs the name of a run, or a pattern such as 'catch*'.")
    experiment, only = make_experiment(options.experiment, options.scale), options.only or ()
    chosen, title = choose_runs(experiment, only), f"{experiment.name}, scale {experiment.scale}"
    if options.workers < 1:
        raise PaircreditError(f"--workers is {options.workers}, but must be at least 1.")
    with resumable(options.out), ProgressBars(title, len(chosen)) as bars:
        if options.workers == 1:
            make_runs(experiment, options.out, bars, only)
        else:
            reproduce_side_by_side(experiment, options.out, options.workers, bars, only)
    if len(chosen) < len(experiment.runs):
        print(f"Finished in {options.out}: {len(chosen)} of {len(experiment.runs)} runs, those that were asked for.")
        return 0
    print(f"The runs are in {options.out}. Next: paircredit claims {options.out} or paircredit figures {options.out}")
    return 0


def resume(words: list[str]) -> int:
    options = parse_options(ResumeOptions, words, "paircredit resume")
    from paircredit.console import ProgressBars
    from paircredit.experiments.reproduce import run_one, runs_to_resume
    from paircredit.experiments.spec import TrainingSpec

    jobs = runs_to_resume(options.folder)
    with resumable(options.folder), ProgressBars(str(options.folder), len(jobs)) as bars:
        for spec, folder in jobs:
            run_one(spec, folder, bars)
    spec, folder = jobs[0]
    if len(jobs) == 1 and isinstance(spec, TrainingSpec):
        return say_return(spec, folder / spec.name)
    print(f"All runs in {options.folder} are finished.")
    return 0
