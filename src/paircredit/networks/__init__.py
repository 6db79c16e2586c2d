"""Representations of policies and value functions."""

from paircredit.networks.layers import NetworkSpec
from paircredit.networks.reconstructive_memory import MemorySpec, ReconstructiveMemory
from paircredit.networks.state_functions import PolicyTable, ValueTable

__all__ = ["MemorySpec", "NetworkSpec", "PolicyTable", "ReconstructiveMemory", "ValueTable"]
