"""Representations of policies and value functions."""

from paircredit.networks.build import num_states, policy_for, value_for
from paircredit.networks.tabular import PolicyTable, ValueTable

__all__ = ["PolicyTable", "ValueTable", "num_states", "policy_for", "value_for"]
