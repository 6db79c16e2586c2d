"""Learned weights as one table per member: of pairs of states, or of pairs of times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from paircredit.training import LoopState, learns_weights, stack_members
from paircredit.types import Trajectory

LARGEST_SNAPSHOTS = 2**24
"""Snapshots of the weights are kept over training where all of them together have no more entries than this."""


def has_tables(methods: Sequence[Any], state: LoopState) -> bool:
    """Whether the members learn weights that can be written down as tables."""
    if not learns_weights(methods[0]):
        return False
    return hasattr(state.learner.weights.parameters, "matrix") or isinstance(state.trajectory, Trajectory)


def weight_tables(methods: Sequence[Any], state: LoopState) -> np.ndarray:
    """[M, N, N]: a table's own entries, or what a network says on average about the episodes of the last batch."""
    weights = state.learner.weights.parameters
    if hasattr(weights, "matrix"):
        return np.asarray(jax.vmap(lambda w: w.matrix())(weights))
    return np.asarray(_mean_over_episodes(stack_members(methods), state.learner, state.trajectory))


def may_be_kept(methods: Sequence[Any], state: LoopState, snapshots: int) -> bool:
    """Whether so many snapshots of the tables are small enough to be kept."""
    if not has_tables(methods, state):
        return False
    weights = state.learner.weights.parameters
    if hasattr(weights, "matrix"):
        entries = sum(leaf.size for leaf in jax.tree.leaves(weights))
    else:
        entries = len(methods) * state.trajectory.rewards.shape[-1] ** 2
    return snapshots * entries <= LARGEST_SNAPSHOTS


@jax.jit
def _mean_over_episodes(methods: Any, learners: Any, trajectories: Trajectory) -> jax.Array:
    def member(method: Any, learner: Any, trajectory: Trajectory) -> jax.Array:
        return jnp.mean(method.credit(learner, trajectory).weights, axis=0)

    return jax.vmap(member)(methods, learners, trajectories)
