"""An external memory: a row is written per step, heads read by similarity.

Row q holds what was written at step q, and rows that are not written yet are zeros that take part in every read, with
similarity 0. Of these only so many can be among the k rows that a head reads as k itself: a memory of T + k rows reads
exactly as one of a thousand does in an episode of T steps, and no more are kept.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from paircredit.errors import PaircreditError
from paircredit.networks.layers import Dense
from paircredit.settings import check_all, setting

SMALLEST_SQUARED_NORM = 1e-12
"""Vectors shorter than the root of this are not normalised to length 1 but stay near 0 (our choice)."""


@dataclasses.dataclass(frozen=True)
class MemorySpec:
    """Sizes of an agent with an external memory (all from TVT's published code)."""

    rows: int = setting(1000, "Rows of the memory; episodes must not be longer", at_least=1)
    width: int = setting(200, "Numbers per row, and of the state code z that is written into it", at_least=1)
    encoder: int = setting(400, "Hidden units of the encoder that makes z", at_least=1)
    controller: int = setting(256, "Units of each of the two LSTMs", at_least=1)
    heads: int = setting(3, "Read heads", at_least=1)
    top_reads: int = setting(50, "Rows that a head reads: the most similar ones", at_least=1)
    hidden: int = setting(200, "Hidden units of policy and value", at_least=1)

    def check(self, horizon: int) -> None:
        """Refuse sizes that cannot work, and episodes that do not fit.

        Raises:
            PaircreditError: something is below 1, or a memory is too small.
        """
        check_all(self, "memory")
        if self.top_reads > self.rows:
            raise PaircreditError(
                f"memory.top_reads is {self.top_reads}, but the memory has only {self.rows} rows to read."
            )
        if horizon > self.rows:
            raise PaircreditError(
                f"Episodes of up to {horizon} steps do not fit into a memory of {self.rows} rows, one per step; "
                f"raise memory.rows to {horizon} or shorten the episodes."
            )

    def rows_needed(self, horizon: int) -> int:
        """Rows that must be kept to read as if all were there."""
        return min(self.rows, horizon + self.top_reads)


class Memory(NamedTuple):
    """The rows, and what each is multiplied with to have length 1."""

    rows: Float[Array, "R W"]
    scales: Float[Array, " R"]

    @classmethod
    def empty(cls, rows: int, width: int, dtype: jnp.dtype) -> Memory:
        """All rows zero."""
        contents = jnp.zeros((rows, width), dtype=dtype)
        return cls(contents, inverse_norm(contents))

    def write(self, step: Int[Array, ""], row: Float[Array, " W"]) -> Memory:
        """The memory after a step. No gradient goes into what is written."""
        row = jax.lax.stop_gradient(row)
        return Memory(
            jax.lax.dynamic_update_index_in_dim(self.rows, row, step, 0),
            jax.lax.dynamic_update_index_in_dim(self.scales, inverse_norm(row), step, 0),
        )


class Read(NamedTuple):
    """What came back from the memory: of all heads side by side, and from where, and how sharply each head asked."""

    content: Float[Array, " HW"]
    weights: Float[Array, "H R"]
    strengths: Float[Array, " H"]


class Reader(eqx.Module):
    """Heads that ask for rows similar to a key: softmax of strength · cosine over the most similar rows."""

    questions: Dense
    heads: int = eqx.field(static=True)
    top_reads: int = eqx.field(static=True)

    @classmethod
    def random(cls, key: Key[Array, ""], inputs: int, spec: MemorySpec) -> Reader:
        """Fan-in normal weights, biases of 0."""
        return cls(Dense.random(key, inputs, spec.heads * (spec.width + 1)), spec.heads, spec.top_reads)

    def __call__(self, controls: Float[Array, " controls"], memory: Memory) -> Read:
        """Read with keys and strengths made from the controller's output; keys and strengths are one product."""
        keys, strengths = jnp.split(self.questions(controls), [self.heads * memory.rows.shape[1]])
        keys, strengths = keys.reshape(self.heads, -1), jax.nn.softplus(strengths)
        similarity = (keys @ memory.rows.T) * memory.scales * inverse_norm(keys)[:, None]
        scores = strengths[:, None] * similarity
        weights = jax.nn.softmax(jnp.where(largest(jax.lax.stop_gradient(scores), self.top_reads), scores, -jnp.inf))
        return Read((weights @ memory.rows).reshape(-1), weights, strengths)


def inverse_norm(x: Float[Array, "*batch W"]) -> Float[Array, "*batch"]:
    """1/‖x‖, bounded where x is near 0."""
    return jax.lax.rsqrt(jnp.maximum(jnp.sum(jnp.square(x), axis=-1), SMALLEST_SQUARED_NORM))


def largest(scores: Float[Array, "H R"], count: int) -> Bool[Array, "H R"]:
    """Which scores are among the `count` largest of their row; of equal ones the first.

    Every score is compared with every other, and no index leaves: for a few hundred rows one pass on a GPU, where
    sorting and gathering would be many.
    """
    rows = scores.shape[-1]
    if count >= rows:
        return jnp.ones(scores.shape, dtype=bool)
    order = jnp.arange(rows)
    one, other = scores[:, :, None], scores[:, None, :]
    before = (other > one) | ((other == one) & (order[None, :] < order[:, None]))
    return jnp.sum(before, axis=-1) < count
