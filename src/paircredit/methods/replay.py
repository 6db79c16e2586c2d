"""The last episodes, kept on the device to learn from again."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from paircredit.envs.protocol import Environment
from paircredit.types import PyTree, Trajectory


class Episodes(eqx.Module):
    """What a return is predicted from, and the return.

    Attributes:
        observations: S_0 … S_{T−1}, as the environment shows them (pictures stay bytes).
        actions: A_0 … A_{T−1}.
        valid: which steps belong to the episode.
        returns: Σ R, undiscounted.
    """

    observations: PyTree
    actions: Int[Array, "B T"]
    valid: Bool[Array, "B T"]
    returns: Float[Array, " B"]

    @classmethod
    def of(cls, trajectory: Trajectory) -> Episodes:
        """Those of a rollout."""
        return cls(
            observations=jax.tree.map(lambda x: x[:, :-1], trajectory.observations),
            actions=trajectory.actions.astype(jnp.int32),
            valid=trajectory.valid,
            returns=jnp.sum(jnp.where(trajectory.valid, trajectory.rewards, 0.0), axis=1),
        )


class Replay(eqx.Module):
    """A ring: a new episode takes the place of the oldest.

    Attributes:
        episodes: as many as there is room for; those that were not stored yet are zeros.
        stored: how many were ever stored.
    """

    episodes: Episodes
    stored: Int[Array, ""]

    @classmethod
    def empty(cls, env: Environment, capacity: int) -> Replay:
        """Room for this many episodes of an environment."""
        steps = env.spec.horizon
        observation = jax.eval_shape(env.reset, jax.random.key(0))[1].observation
        return cls(
            Episodes(
                observations=jax.tree.map(lambda x: jnp.zeros((capacity, steps, *x.shape), x.dtype), observation),
                actions=jnp.zeros((capacity, steps), dtype=jnp.int32),
                valid=jnp.zeros((capacity, steps), dtype=bool),
                returns=jnp.zeros((capacity,), dtype=float),
            ),
            jnp.zeros((), dtype=jnp.int32),
        )

    @property
    def capacity(self) -> int:
        """How many episodes there is room for."""
        return self.episodes.returns.shape[-1]

    def insert(self, new: Episodes) -> Replay:
        """With the new episodes, no more than there is room for, in the places of the oldest."""
        count = new.returns.shape[0]
        places = (self.stored + jnp.arange(count, dtype=jnp.int32)) % self.capacity
        episodes = jax.tree.map(lambda old, x: old.at[places].set(x, unique_indices=True), self.episodes, new)
        return Replay(episodes, self.stored + count)

    def sample(self, key: Key[Array, ""], count: int) -> Episodes:
        """Episodes drawn uniformly from those that are stored, each draw from all of them."""
        places = jax.random.randint(key, (count,), 0, jnp.minimum(self.stored, self.capacity))
        return jax.tree.map(lambda x: x[places], self.episodes)
