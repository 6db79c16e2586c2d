"""Trajectories that cannot be learned from."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.types import Trajectory, check_trajectory
from tests.sentences import refused


def trajectory(rewards, valid) -> Trajectory:
    rewards, valid = np.asarray(rewards, dtype=np.float32), np.asarray(valid)
    never = jnp.zeros(rewards.shape, dtype=bool)
    return Trajectory(
        observations=jnp.zeros((rewards.shape[0], rewards.shape[1] + 1), dtype=int),
        legal=jnp.ones((*rewards.shape, 2), dtype=bool),
        actions=jnp.zeros(rewards.shape, dtype=int),
        rewards=jnp.asarray(rewards),
        terminated=never,
        truncated=never,
        valid=jnp.asarray(valid),
    )


def test_padding_may_hold_anything():
    check_trajectory(trajectory([[1.0, np.nan], [2.0, np.inf]], [[True, False], [True, False]]))


@pytest.mark.parametrize("bad, spelled", [(np.nan, "nan"), (np.inf, "inf"), (-np.inf, "-inf")])
def test_a_reward_inside_an_episode_must_be_finite(bad, spelled):
    with refused("1 of 3 rewards", "(1, 0)", spelled, "environment"):
        check_trajectory(trajectory([[1.0, 0.0], [bad, np.nan]], [[True, True], [True, False]]))
