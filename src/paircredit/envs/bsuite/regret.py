"""The regret of an episode, as bsuite counts it; the sum over all episodes is the total regret.

The original counts catch and the umbrella inside the environment, where neither noise, nor scale, nor the random
rewards of the day are known. Here the final observation tells how an episode really ended. Cartpole and the chain it
counts from the return: the best return, times the number of episodes, less the rewards.

All functions take whole episodes, padded to the horizon, with any leading axes, and return one number per episode.
"""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Array, Float

from paircredit.types import Trajectory

CATCH_WIDTH = 5
"""Columns of the board of catch: its last five numbers are the row of the paddle."""
CARTPOLE_BEST = 1000.0
"""The return without regret; a perfect episode gets one more and so has a regret of −1."""
CHAIN_BEST = 1.1
"""The return of the bonus chain, which has no regret."""


def catch_regret(trajectory: Trajectory) -> Float[Array, "*batch"]:
    """0 for a ball that was caught, 2 for one that was missed: it lies beside the paddle in the last row."""
    last_row = trajectory.observations[..., -1, -CATCH_WIDTH:]
    return 2 * (last_row.sum(axis=-1) - 1)


def umbrella_regret(trajectory: Trajectory) -> Float[Array, "*batch"]:
    """0 where the agent ends with what it needs, else 2; the random rewards before do not count."""
    final = trajectory.observations[..., -1, :]
    return 2 * jnp.abs(final[..., 0] - final[..., 1])


def cartpole_regret(trajectory: Trajectory) -> Float[Array, "*batch"]:
    """1000 less the return."""
    return CARTPOLE_BEST - _paid(trajectory)


def discounting_chain_regret(trajectory: Trajectory) -> Float[Array, "*batch"]:
    """1.1 less the return: 0 in the bonus chain, 0.1 in all others."""
    return CHAIN_BEST - _paid(trajectory)


def episode_summary(
    trajectory: Trajectory, regret: Callable[[Trajectory], Float[Array, "*batch"]]
) -> dict[str, Float[Array, ""]]:
    """Mean regret, mean length and best return of a batch, which the training loop records with its mean return.

    With the return these are all that bsuite's own logs hold.
    """
    lengths = trajectory.valid.sum(axis=-1).astype(trajectory.rewards.dtype)
    return {
        "regret": jnp.mean(regret(trajectory)),
        "episode_length": jnp.mean(lengths),
        "best_return": jnp.max(_paid(trajectory)),
    }


def _paid(trajectory: Trajectory) -> Float[Array, "*batch"]:
    return jnp.where(trajectory.valid, trajectory.rewards, 0.0).sum(axis=-1)
