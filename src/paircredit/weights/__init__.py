"""Pair weight functions f(S_t, S_k, k−t): learned, handcrafted, exponential."""

from paircredit.weights.build import weights_for
from paircredit.weights.exponential import exponential_weights
from paircredit.weights.fixed_pairs import FixedPairs
from paircredit.weights.handcrafted import handcrafted_weights
from paircredit.weights.network import PairNetwork
from paircredit.weights.protocol import PairInputs, PairWeights
from paircredit.weights.return_generator import ReturnGenerator
from paircredit.weights.tabular import FixedTable, SigmoidTable
from paircredit.weights.traces import trace_weights

__all__ = [
    "FixedPairs",
    "FixedTable",
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
