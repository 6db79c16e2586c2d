"""The data that flows between the rooms: what an environment says and what a rollout holds."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt8

from paircredit.errors import PaircreditError

PyTree = Any
"""Any nesting of arrays that JAX can walk through."""


def is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


class TimeStep(eqx.Module):
    """What an environment says after a reset or a transition.

    When `terminated` or `truncated` is set, `observation` is the final observation of the episode: environments
    never reset themselves. Termination means that nothing can follow, truncation that we stopped looking; only
    the latter is bootstrapped from the value of the final observation. A rollout adds a batch axis.

    Some environments say more: where an episode can end for learning alone (a life is lost, the game goes on), `over`
    tells when there is nothing to go on with; where learning is paid otherwise than players are (clipped), `score` is
    what the player got. None: as terminated or truncated; as the reward.
    """

    observation: PyTree
    legal: Bool[Array, "*batch A"]
    reward: Float[Array, "*batch"]
    terminated: Bool[Array, "*batch"]
    truncated: Bool[Array, "*batch"]
    over: Bool[Array, "*batch"] | None = None
    score: Float[Array, "*batch"] | None = None


class PixelObservation(eqx.Module):
    """A picture of bytes and some bits that it does not show."""

    pixels: UInt8[Array, "*batch H W C"]
    flags: Bool[Array, "*batch F"]


class Trajectory(eqx.Module):
    """One episode, padded to the horizon T, or a segment of T steps of a stream of episodes; batches add leading axes.

    In a segment an episode may end and another begin. Between them lies one step that is not valid, in which nothing is
    done but to start again: before it stands the final observation of the old episode, after it the first of the new
    one. An end for learning alone (a life that was lost) has no such step, the game goes on. At the end of a segment an
    episode that goes on is truncated.

    Attributes:
        observations: T+1 observations, `observations[t]` is S_t. After the end the final one is repeated.
        legal: which actions could be taken in S_t.
        actions: `actions[t]` is A_t.
        rewards: `rewards[t]` is R_{t+1}, what followed A_t.
        terminated: the transition t → t+1 ended the episode for good.
        truncated: the episode was cut after the transition t → t+1.
        valid: the step belongs to an episode; everything after its end is padding.
        episode: in a segment, a number per step, the same for steps of the same episode; None: one episode.
    """

    observations: PyTree
    legal: Bool[Array, "*batch T A"]
    actions: Int[Array, "*batch T"]
    rewards: Float[Array, "*batch T"]
    terminated: Bool[Array, "*batch T"]
    truncated: Bool[Array, "*batch T"]
    valid: Bool[Array, "*batch T"]
    episode: Int[Array, "*batch T"] | None = None


def episode_numbers(ends: Bool[Array, "*batch T"]) -> Int[Array, "*batch T"]:
    """How many episodes of a segment ended before each step, given the steps that end one."""
    counts = ends.astype(jnp.int32)
    return jnp.cumsum(counts, axis=-1) - counts


def check_trajectory(trajectory: Trajectory) -> None:
    """Refuse a concrete trajectory (outside `jit`) in which a reward is NaN or infinite."""
    rewards, valid = np.asarray(trajectory.rewards), np.asarray(trajectory.valid)
    bad = valid & ~np.isfinite(rewards)
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        raise PaircreditError(
            f"{int(bad.sum())} of {int(valid.sum())} rewards are NaN or infinite, the first at index {where} "
            f"({rewards[where]}); mend the environment before training on it."
        )
