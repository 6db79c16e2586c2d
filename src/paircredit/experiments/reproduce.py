"""Making an experiment: its runs one after another, in one new folder."""

from __future__ import annotations

from pathlib import Path

from paircredit.errors import unknown_name
from paircredit.experiments.dag import dag
from paircredit.experiments.dag_switches import dag_switches
from paircredit.experiments.diagnostic_runs import run_credit, run_umbrella_variance
from paircredit.experiments.progress import Progress, Silent
from paircredit.experiments.spec import CreditSpec, Experiment, RunSpec, TrainingSpec
from paircredit.experiments.training_run import run_training
from paircredit.experiments.umbrella import umbrella
from paircredit.runs.folder import make_folder

_EXPERIMENTS = {
    "dag": (dag, "weights in a DAG of decisions: heat maps, speed of learning, masked values, estimator quality"),
    "dag-switches": (dag_switches, "what the paper leaves open about the DAG, tried one switch at a time"),
    "umbrella": (umbrella, "variance of the decision's advantage in the umbrella MDP"),
}


def experiments() -> dict[str, str]:
    """Names and one-line summaries of all experiments."""
    return {name: summary for name, (_, summary) in _EXPERIMENTS.items()}


def make_experiment(name: str, scale: str) -> Experiment:
    """A named experiment at a scale."""
    if name not in _EXPERIMENTS:
        raise unknown_name("experiment", name, _EXPERIMENTS)
    return _EXPERIMENTS[name][0](scale)


def reproduce(experiment: Experiment, folder: Path, progress: Progress | None = None) -> None:
    """Make all runs of an experiment.

    Args:
        experiment: what to run.
        folder: must not exist; each run gets a folder in it.
        progress: is told how it goes.
    """
    make_folder(folder)
    for spec in experiment.runs:
        run_one(spec, folder, progress or Silent())


def run_one(spec: RunSpec, folder: Path, progress: Progress) -> None:
    """Make one run."""
    if isinstance(spec, TrainingSpec):
        run_training(spec, folder, progress)
    elif isinstance(spec, CreditSpec):
        run_credit(spec, folder, progress)
    else:
        run_umbrella_variance(spec, folder, progress)
