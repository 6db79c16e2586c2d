"""Representations of policies and value functions."""

from paircredit.networks.actor_critic import PolicyNetwork, ValueNetwork
from paircredit.networks.build import num_states, perception_for, policy_for, value_for, values_and_features
from paircredit.networks.memory import MemorySpec
from paircredit.networks.reconstructive_memory import ReconstructiveMemory
from paircredit.networks.redistribution import AdditiveCell, ReturnPredictor
from paircredit.networks.spec import NetworkSpec
from paircredit.networks.tabular import PolicyTable, ValueTable

__all__ = [
    "AdditiveCell",
    "MemorySpec",
    "NetworkSpec",
    "PolicyNetwork",
    "PolicyTable",
    "ReconstructiveMemory",
    "ReturnPredictor",
    "ValueNetwork",
    "ValueTable",
    "num_states",
    "perception_for",
    "policy_for",
    "value_for",
    "values_and_features",
]
