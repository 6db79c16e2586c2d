"""Representations of policies and value functions."""

from paircredit.networks.reconstructive_memory import MemorySpec
from paircredit.networks.spec import NetworkSpec
from paircredit.networks.state_functions import policy_for, value_for
from paircredit.networks.transformer import TransformerSpec

__all__ = ["MemorySpec", "NetworkSpec", "TransformerSpec", "policy_for", "value_for"]
