"""Experiments: what to run, as data, and the making of it."""

from paircredit.experiments.reproduce import reproduce
from paircredit.experiments.spec import Experiment, TrainingSpec, Variant

__all__ = ["Experiment", "TrainingSpec", "Variant", "reproduce"]
