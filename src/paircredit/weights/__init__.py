"""Pair weight functions f(S_t, S_k, k−t): learned, handcrafted, exponential."""

from paircredit.weights.handcrafted import handcrafted_weights
from paircredit.weights.pair_network import PairNetwork, weights_for
from paircredit.weights.return_generator import ReturnGenerator
from paircredit.weights.tables import (
    FixedPairs,
    FixedTable,
    MatrixWeights,
    PairInputs,
    PairWeights,
    SigmoidTable,
    exponential_weights,
    trace_weights,
)

__all__ = [
    "FixedPairs",
    "FixedTable",
    "MatrixWeights",
    "PairInputs",
    "PairNetwork",
    "PairWeights",
    "ReturnGenerator",
    "SigmoidTable",
    "exponential_weights",
    "handcrafted_weights",
    "trace_weights",
    "weights_for",
]
