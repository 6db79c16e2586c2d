"""How a method without memory acts; method classes take these functions in as their own."""

from __future__ import annotations

from typing import Any

from jaxtyping import Array, Float, Int

from paircredit.types import PyTree


def no_memory(self: Any, learner: Any) -> tuple[()]:
    """Nothing is carried from step to step."""
    del self, learner
    return ()


def nothing_to_remember(self: Any, carry: PyTree, action: Int[Array, ""], reward: Float[Array, ""]) -> PyTree:
    """The carry as it is: neither the action nor the reward is looked at again."""
    del self, action, reward
    return carry


def logits_of_policy(
    self: Any, learner: Any, carry: tuple[()], observation: PyTree
) -> tuple[Float[Array, " A"], tuple[()]]:
    """The learner's policy, asked about one observation."""
    del self
    return learner.policy.parameters(observation), carry
