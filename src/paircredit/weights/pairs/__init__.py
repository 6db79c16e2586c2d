"""The logits of all pairs of an episode: four back ends with one signature and one answer."""

from paircredit.weights.pairs.at_once import (
    NORMALISER_EPSILON,
    PairParameters,
    dense_pair_logits,
    whole_pair_logits,
)
from paircredit.weights.pairs.kernel import kernel_pair_logits
from paircredit.weights.pairs.tiled import tiled_pair_logits

__all__ = [
    "NORMALISER_EPSILON",
    "PairParameters",
    "dense_pair_logits",
    "kernel_pair_logits",
    "tiled_pair_logits",
    "whole_pair_logits",
]
