"""Experiments: what to run, as data, and the making of it."""

from paircredit.experiments.reproduce import experiments, make_experiment, reproduce
from paircredit.experiments.spec import Experiment, TrainingSpec

__all__ = ["Experiment", "TrainingSpec", "experiments", "make_experiment", "reproduce"]
