"""What the policy of a method does with advantages: the step that its inner loop takes along them."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from paircredit.methods import InnerLoop, Trained
from paircredit.types import Trajectory


@jax.jit
def policy_after(inner: InnerLoop, policy: Trained, batch: Trajectory, advantages: Any) -> Trained:
    """The policy after one step along advantages, which are taken as they are."""
    gradients = jax.grad(inner.policy_loss)(policy.parameters, batch, advantages)
    return policy.step(inner.policy_optimiser, gradients)


def same(one: Any, other: Any, **tolerance: float) -> bool:
    """Whether two trees hold the same numbers."""
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(np.allclose(a, b, **tolerance) for a, b in pairs)
