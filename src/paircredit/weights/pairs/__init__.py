"""The logits of all pairs of an episode, computed several ways behind one signature."""

from paircredit.weights.pairs.dense import dense_pair_logits
from paircredit.weights.pairs.problem import NORMALISER_EPSILON, PairParameters
from paircredit.weights.pairs.tiled import tiled_pair_logits
from paircredit.weights.pairs.whole import whole_pair_logits

__all__ = ["NORMALISER_EPSILON", "PairParameters", "dense_pair_logits", "tiled_pair_logits", "whole_pair_logits"]
