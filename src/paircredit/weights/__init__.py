"""Pair weight functions f(S_t, S_k, k−t): learned, handcrafted, exponential."""

from paircredit.weights.pair_network import PairNetwork, weights_for
from paircredit.weights.return_generator import TransformerSpec
from paircredit.weights.tables import (
    FixedPairs,
    FixedTable,
    PairInputs,
    PairWeights,
    SigmoidTable,
    exponential_weights,
    handcrafted_weights,
)

__all__ = [
    "FixedPairs",
    "FixedTable",
    "PairInputs",
    "PairNetwork",
    "PairWeights",
    "SigmoidTable",
    "TransformerSpec",
    "exponential_weights",
    "handcrafted_weights",
    "weights_for",
]
