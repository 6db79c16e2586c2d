"""Representations of policies and value functions."""

from paircredit.networks.actor_critic import PolicyNetwork, SharedNetwork, ValueNetwork
from paircredit.networks.build import (
    num_states,
    perception_for,
    policy_and_value_for,
    policy_for,
    value_for,
    values_and_features,
)
from paircredit.networks.contribution import ContributionNetwork, ContributionTable, contribution_for
from paircredit.networks.memory import MemorySpec
from paircredit.networks.reconstructive_memory import ReconstructiveMemory
from paircredit.networks.redistribution import AdditiveCell, ReturnPredictor
from paircredit.networks.spec import NetworkSpec
from paircredit.networks.state_lambda import LambdaNetwork, LambdaTable, lambda_for
from paircredit.networks.tabular import PolicyTable, ValueTable
from paircredit.networks.transformer import Transformer, TransformerSpec

__all__ = [
    "AdditiveCell",
    "ContributionNetwork",
    "ContributionTable",
    "LambdaNetwork",
    "LambdaTable",
    "MemorySpec",
    "NetworkSpec",
    "PolicyNetwork",
    "PolicyTable",
    "ReconstructiveMemory",
    "ReturnPredictor",
    "SharedNetwork",
    "Transformer",
    "TransformerSpec",
    "ValueNetwork",
    "ValueTable",
    "contribution_for",
    "lambda_for",
    "num_states",
    "perception_for",
    "policy_and_value_for",
    "policy_for",
    "value_for",
    "values_and_features",
]
