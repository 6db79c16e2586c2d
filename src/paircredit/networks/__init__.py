"""Representations of policies and value functions."""

from paircredit.networks.layers import NetworkSpec
from paircredit.networks.reconstructive_memory import MemorySpec, ReconstructiveMemory
from paircredit.networks.state_functions import (
    PolicyTable,
    ValueTable,
    contribution_for,
    lambda_for,
    num_states,
    policy_and_value_for,
    policy_for,
    value_for,
    values_and_features,
)

__all__ = [
    "MemorySpec",
    "NetworkSpec",
    "PolicyTable",
    "ReconstructiveMemory",
    "ValueTable",
    "contribution_for",
    "lambda_for",
    "num_states",
    "policy_and_value_for",
    "policy_for",
    "value_for",
    "values_and_features",
]
