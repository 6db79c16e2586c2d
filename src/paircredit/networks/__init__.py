"""Representations of policies and value functions."""

from paircredit.networks.additive_cell import AdditiveCell
from paircredit.networks.perception import PerceptionModule, Preparable, perception_of, prepare
from paircredit.networks.reconstructive_memory import MemorySpec, ReconstructiveMemory
from paircredit.networks.return_predictor import ReturnPredictor
from paircredit.networks.spec import NetworkSpec
from paircredit.networks.state_functions import (
    ContributionNetwork,
    ContributionTable,
    LambdaNetwork,
    LambdaTable,
    PolicyNetwork,
    PolicyTable,
    SharedNetwork,
    ValueFunction,
    ValueNetwork,
    ValueTable,
    contribution_for,
    lambda_for,
    num_states,
    policy_and_value_for,
    policy_for,
    refuse_sharing,
    value_for,
    values_and_features,
)
from paircredit.networks.transformer import Transformer, TransformerSpec

__all__ = [
    "AdditiveCell",
    "ContributionNetwork",
    "ContributionTable",
    "LambdaNetwork",
    "LambdaTable",
    "MemorySpec",
    "NetworkSpec",
    "PerceptionModule",
    "PolicyNetwork",
    "PolicyTable",
    "Preparable",
    "ReconstructiveMemory",
    "ReturnPredictor",
    "SharedNetwork",
    "Transformer",
    "TransformerSpec",
    "ValueFunction",
    "ValueNetwork",
    "ValueTable",
    "contribution_for",
    "lambda_for",
    "num_states",
    "perception_of",
    "policy_and_value_for",
    "policy_for",
    "prepare",
    "refuse_sharing",
    "value_for",
    "values_and_features",
]
