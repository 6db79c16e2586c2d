"""Metagradients: how a change of the weights would have changed what the policy learned."""

from paircredit.metagradient.checks import GradientCheck, check_metagradient
from paircredit.metagradient.optimisers import (
    Differentiate,
    Optimiser,
    adam,
    apply_updates,
    clip_by_global_norm,
    global_norm,
    rmsprop,
    sgd,
)
from paircredit.metagradient.problem import (
    MetaProblem,
    OneStep,
    Tape,
    autodiff_one_step,
    explicit_one_step,
    unrolled_metagradient,
    unrolled_objective,
)

__all__ = [
    "Differentiate",
    "GradientCheck",
    "MetaProblem",
    "OneStep",
    "Optimiser",
    "Tape",
    "adam",
    "apply_updates",
    "autodiff_one_step",
    "check_metagradient",
    "clip_by_global_norm",
    "explicit_one_step",
    "global_norm",
    "rmsprop",
    "sgd",
    "unrolled_metagradient",
    "unrolled_objective",
]
