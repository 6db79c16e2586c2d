"""Stored experience to learn from again: whole episodes, or the sequences of a stream.

Of a stream, steps are written where they stay: every actor owns a slot, and a sequence that is complete is stored by
handing its slot to a ring and taking the slot of the oldest one from it. No sequence is ever copied.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from paircredit.envs.protocol import Environment
from paircredit.estimators.redistribution import SequenceMarks, mark_sequences
from paircredit.types import PyTree, Trajectory


class Episodes(eqx.Module):
    """What a return is predicted from (S_0 … S_{T−1}, pictures as bytes, and A_0 … A_{T−1}), and Σ R, undiscounted."""

    observations: PyTree
    actions: Int[Array, "B T"]
    valid: Bool[Array, "B T"]
    returns: Float[Array, " B"]

    @classmethod
    def of(cls, trajectory: Trajectory) -> Episodes:
        return cls(
            observations=jax.tree.map(lambda x: x[:, :-1], trajectory.observations),
            actions=trajectory.actions.astype(jnp.int32),
            valid=trajectory.valid,
            returns=jnp.sum(jnp.where(trajectory.valid, trajectory.rewards, 0.0), axis=1),
        )


class EpisodeBuffer(eqx.Module):
    """A ring buffer of whole episodes: a new one takes the place of the oldest.

    Places of episodes that were not `stored` yet (the number ever stored) hold zeros.
    """

    episodes: Episodes
    stored: Int[Array, ""]

    @classmethod
    def empty(cls, env: Environment, capacity: int) -> EpisodeBuffer:
        observation = jax.eval_shape(env.reset, jax.random.key(0))[1].observation
        episodes = Episodes(
            observations=_room(observation, capacity, env.spec.horizon),
            actions=jnp.zeros((capacity, env.spec.horizon), dtype=jnp.int32),
            valid=jnp.zeros((capacity, env.spec.horizon), dtype=bool),
            returns=jnp.zeros((capacity,), dtype=float),
        )
        return cls(episodes, jnp.zeros((), dtype=jnp.int32))

    @property
    def capacity(self) -> int:
        return self.episodes.returns.shape[-1]

    def insert(self, new: Episodes) -> EpisodeBuffer:
        """With the new episodes, at most `capacity` of them, in the places of the oldest."""
        count = new.returns.shape[0]
        places = (self.stored + jnp.arange(count, dtype=jnp.int32)) % self.capacity
        episodes = jax.tree.map(lambda old, x: old.at[places].set(x, unique_indices=True), self.episodes, new)
        return EpisodeBuffer(episodes, self.stored + count)

    def sample(self, key: Key[Array, ""], count: int) -> Episodes:
        """Episodes drawn uniformly from those that are stored, each draw from all of them."""
        places = jax.random.randint(key, (count,), 0, jnp.minimum(self.stored, self.capacity))
        return jax.tree.map(lambda x: x[places], self.episodes)


class Slots(eqx.Module):
    """Which of the N + B slots of a `SequenceBuffer` is whose.

    The B actors write to the slots `writing`, and `returns_so_far` are Σ R of their running sequences. The `ring` has
    the slots of stored sequences, of these `lengths` (0 where there is none yet) and `returns`; a new one takes the
    place of the oldest. `stored` counts all that were ever stored.
    """

    writing: Int[Array, " B"]
    returns_so_far: Float[Array, " B"]
    ring: Int[Array, " N"]
    lengths: Int[Array, " N"]
    returns: Float[Array, " N"]
    stored: Int[Array, ""]

    def store(self, complete: Bool[Array, " B"], lengths: Int[Array, " B"]) -> Slots:
        """Store the sequences that are complete, of these lengths; their actors go on in the slots of the oldest."""
        room = self.ring.shape[0]
        counts = complete.astype(jnp.int32)
        places = (self.stored + jnp.cumsum(counts) - counts) % room
        oldest = self.ring[places]
        places = jnp.where(complete, places, room)  # out of range: nothing is written
        return Slots(
            writing=jnp.where(complete, oldest, self.writing),
            returns_so_far=jnp.where(complete, 0.0, self.returns_so_far),
            ring=self.ring.at[places].set(self.writing, mode="drop"),
            lengths=self.lengths.at[places].set(lengths, mode="drop"),
            returns=self.returns.at[places].set(self.returns_so_far, mode="drop"),
            stored=self.stored + jnp.sum(counts, dtype=jnp.int32),
        )


class SequenceBuffer(eqx.Module):
    """The running sequences of B actors and the last N complete ones.

    `frames` hold what is seen of S_t, and `actions` A_t, in N + B slots of S steps; `running` counts the steps of the
    running sequences.
    """

    frames: PyTree
    actions: Int[Array, "slots S"]
    running: Int[Array, " B"]
    slots: Slots

    @classmethod
    def empty(cls, frame: PyTree, actors: int, capacity: int, steps: int) -> SequenceBuffer:
        """Room for N = `capacity` complete sequences of S = `steps` steps beside those of B <= N actors."""
        slots = jnp.arange(actors + capacity, dtype=jnp.int32)
        return cls(
            frames=_room(frame, actors + capacity, steps),
            actions=jnp.zeros((actors + capacity, steps), dtype=jnp.int32),
            running=jnp.zeros((actors,), dtype=jnp.int32),
            slots=Slots(
                writing=slots[:actors],
                returns_so_far=jnp.zeros((actors,), dtype=float),
                ring=slots[actors:],
                lengths=jnp.zeros((capacity,), dtype=jnp.int32),
                returns=jnp.zeros((capacity,), dtype=float),
                stored=jnp.zeros((), dtype=jnp.int32),
            ),
        )

    @property
    def steps(self) -> int:
        """S, the steps of a full sequence."""
        return self.actions.shape[-1]

    @property
    def stored(self) -> Int[Array, ""]:
        return self.slots.stored

    def marks(self, trajectory: Trajectory) -> SequenceMarks:
        """Where the sequences of the next segment of every actor start and end.

        The last step of a segment is truncated also where the episode goes on. One that was indeed cut there is closed
        with the next segment, which begins with a step that is not valid.
        """
        last = jnp.arange(trajectory.valid.shape[1]) == trajectory.valid.shape[1] - 1
        ends = trajectory.terminated | (trajectory.truncated & ~last)
        return jax.vmap(lambda v, e, n: mark_sequences(v, e, n, self.steps))(trajectory.valid, ends, self.running)

    def add(
        self,
        frames: PyTree,
        actions: Int[Array, "B T"],
        rewards: Float[Array, "B T"],
        valid: Bool[Array, "B T"],
        marks: SequenceMarks,
    ) -> tuple[SequenceBuffer, Float[Array, ""]]:
        """With the next segment of every actor; any number of sequences may end in it.

        `frames` are what is to be kept of S_0 … S_{T−1}, `valid` and `marks` say which steps belong to sequences and
        where these start and end. Returns the buffer, and the largest |return| of the sequences that were completed, 0
        if none was.
        """
        capacity, count = self.actions.shape[0], valid.shape[1]
        rewards = jnp.where(valid, rewards, 0.0)
        before = jnp.concatenate([self.running[:, None], marks.position[:, :-1] + 1], axis=1)
        lengths = jnp.where(valid, marks.position + 1, before)  # a step that is not valid is none of the sequence

        def step(state: tuple[Slots, Array], now: tuple[Array, ...]) -> tuple[tuple[Slots, Array], tuple]:
            slots, taken = state
            number, reward, complete, length = now
            slots = eqx.tree_at(lambda s: s.returns_so_far, slots, slots.returns_so_far + reward)
            after = slots.store(complete, length)
            taken = taken.at[jnp.where(complete, after.writing, capacity)].set(number, mode="drop")
            return (after, taken), (slots.writing, jnp.where(complete, jnp.abs(slots.returns_so_far), 0.0))

        start = (self.slots, jnp.full((capacity,), -1, dtype=jnp.int32))
        by_step = (jnp.arange(count, dtype=jnp.int32), rewards.T, marks.closes.T, lengths.T)
        (slots, taken), (written, returns) = jax.lax.scan(step, start, by_step)

        # A slot that was stored and taken again within the segment holds what was written to it after that. What is not
        # to be written goes to slots that do not exist, each to another one: no two writes meet.
        written = written.T
        kept = valid & (jnp.arange(count, dtype=jnp.int32) > taken[written])
        nowhere = capacity + jnp.arange(written.size, dtype=jnp.int32).reshape(written.shape)
        at = jnp.where(kept, written, nowhere), marks.position

        def write(room: Array, new: Array) -> Array:
            return room.at[at].set(new.astype(room.dtype), mode="drop", unique_indices=True)

        frames = jax.tree.map(write, self.frames, frames)
        return SequenceBuffer(frames, write(self.actions, actions), marks.length, slots), jnp.max(returns)

    def sample(self, key: Key[Array, ""], count: int) -> Episodes:
        """Sequences drawn uniformly from those that are stored, each draw from all of them."""
        slots = self.slots
        places = jax.random.randint(key, (count,), 0, jnp.minimum(slots.stored, slots.ring.shape[-1]))
        drawn = slots.ring[places]
        return Episodes(
            observations=jax.tree.map(lambda x: x[drawn], self.frames),
            actions=self.actions[drawn],
            valid=jnp.arange(self.steps, dtype=jnp.int32) < slots.lengths[places][:, None],
            returns=slots.returns[places],
        )


def _room(observation: PyTree, count: int, steps: int) -> PyTree:
    """Zeros for the observations of this many episodes of this many steps."""
    return jax.tree.map(lambda x: jnp.zeros((count, steps, *x.shape), x.dtype), observation)
