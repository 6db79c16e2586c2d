"""Where the sequences of a stream start and end: an episode is cut into sequences of so many steps at most.

One trajectory at a time; batch with `jax.vmap`.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from paircredit.estimators.shapes import expect_shape, trajectory_length


class SequenceMarks(NamedTuple):
    """The sequences of a piece of a stream.

    Attributes:
        position: the number of each step in its sequence, from 0; 0 at steps that are not valid.
        starts: the step is the first of a sequence.
        closes: a sequence is complete behind this step: the step is its last one, or is not valid and shows that the
            sequence before it was.
        length: steps of the sequence that goes on behind the piece; 0 if none does.
    """

    position: Int[Array, " T"]
    starts: Bool[Array, " T"]
    closes: Bool[Array, " T"]
    length: Int[Array, ""]


def mark_sequences(
    valid: Bool[Array, " T"], ends: Bool[Array, " T"], length: Int[Array, ""], most: int
) -> SequenceMarks:
    """Cut a piece of a stream into sequences of at most `most` steps, none across the end of an episode.

    Args:
        valid: which steps belong to episodes.
        ends: which steps are the last of an episode; anything at steps that are not valid.
        length: steps that the running sequence had before the piece.
        most: steps of a full sequence.
    """
    count = trajectory_length("valid", valid)
    expect_shape("ends", ends, (count,))
    steps = jnp.arange(count, dtype=length.dtype)
    over = jnp.where(valid, ends, True)  # nothing goes on behind this step
    anew = ~valid | jnp.concatenate([jnp.zeros((1,), dtype=bool), over[:-1]])
    since = jax.lax.cummax(jnp.where(anew, steps, -1))
    position = jnp.where(since >= 0, steps - since, steps + length) % most
    last = valid & (ends | (position == most - 1))
    running = jnp.where(valid & ~last, position + 1, 0)
    before = jnp.concatenate([length[None], running[:-1]])
    return SequenceMarks(position, valid & (position == 0), jnp.where(valid, last, before > 0), running[-1])
