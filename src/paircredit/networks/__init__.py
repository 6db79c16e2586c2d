"""Representations of policies and value functions."""

from paircredit.networks.layers import NetworkSpec
from paircredit.networks.reconstructive_memory import MemorySpec
from paircredit.networks.state_functions import policy_for, value_for

__all__ = ["MemorySpec", "NetworkSpec", "policy_for", "value_for"]
