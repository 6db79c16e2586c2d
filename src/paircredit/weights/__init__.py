"""Pair weight functions f(S_t, S_k, k−t): learned, handcrafted, exponential."""

from paircredit.weights.pair_network import weights_for
from paircredit.weights.return_generator import ReturnGenerator, TransformerSpec
from paircredit.weights.tables import (
    FixedPairs,
    FixedTable,
    MatrixWeights,
    PairInputs,
    PairWeights,
    SigmoidTable,
    exponential_weights,
    handcrafted_weights,
    trace_weights,
)

__all__ = [
    "FixedPairs",
    "FixedTable",
    "MatrixWeights",
    "PairInputs",
    "PairWeights",
    "ReturnGenerator",
    "SigmoidTable",
    "TransformerSpec",
    "exponential_weights",
    "handcrafted_weights",
    "trace_weights",
    "weights_for",
]
