"""The seven credit-assignment domains of bsuite (Osband et al. 2020), step for step those of the original package.

What differs between the variants of a domain is data, so that all of them train in one program. All chance of an
episode is drawn at its beginning: `start` takes the draws, `reset` makes them from a key, `step` needs none.

Of the regret of an episode, as bsuite counts it, the sum over all episodes is the total regret. That of catch and the
umbrella the original counts inside the environment, where neither noise, nor scale, nor the random rewards of the day
are known; here the final observation tells. That of cartpole and the chain is the best return less the rewards.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from paircredit.types import Trajectory


def episode_returns(trajectory: Trajectory) -> Float[Array, "*batch"]:
    """The sum of rewards of each episode."""
    return jnp.where(trajectory.valid, trajectory.rewards, 0.0).sum(axis=-1)


def episode_summary(trajectory: Trajectory, regret: Float[Array, "*batch"]) -> dict[str, Float[Array, ""]]:
    """Mean regret, mean length and best return of a batch, which the training loop records with its mean return.

    With the return these are all that bsuite's own logs hold.
    """
    lengths = trajectory.valid.sum(axis=-1).astype(trajectory.rewards.dtype)
    return {
        "regret": jnp.mean(regret),
        "episode_length": jnp.mean(lengths),
        "best_return": jnp.max(episode_returns(trajectory)),
    }
