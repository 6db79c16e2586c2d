"""Metagradients: how a change of the weights would have changed what the policy learned."""

from paircredit.metagradient.optimisers import Optimiser, adam, apply_updates, rmsprop, sgd
from paircredit.metagradient.problem import (
    MetaProblem,
    OneStep,
    Tape,
    autodiff_one_step,
    check_metagradient,
    explicit_one_step,
    unrolled_metagradient,
    unrolled_objective,
)

__all__ = [
    "MetaProblem",
    "OneStep",
    "Optimiser",
    "Tape",
    "adam",
    "apply_updates",
    "autodiff_one_step",
    "check_metagradient",
    "explicit_one_step",
    "rmsprop",
    "sgd",
    "unrolled_metagradient",
    "unrolled_objective",
]
