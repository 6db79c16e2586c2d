"""What the games draw with: columns of a picture, and numbers of the right type."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from paircredit.envs.minatar.environment import SIZE

LANES = SIZE - 2
"""Of games in which things cross the picture: all rows but the first and the last."""


def columns() -> Int[Array, " 10"]:
    """Numbers of the columns, or of the rows."""
    return jnp.arange(SIZE, dtype=jnp.int32)


def inside(x: Int[Array, "*N"]) -> Bool[Array, "*N"]:
    """Whether a column is one of the picture's."""
    return (x >= 0) & (x < SIZE)


def layers(*pictures: Bool[Array, "10 10"]) -> Bool[Array, "10 10 C"]:
    """One picture per channel. They are chosen and not put together, which a CPU is slower at."""
    channel, chosen = jnp.arange(len(pictures), dtype=jnp.int32), pictures[0][..., None]
    for number, picture in enumerate(pictures[1:], 1):
        chosen = jnp.where(channel == number, picture[..., None], chosen)
    return chosen


def lanes() -> Int[Array, " 8"]:
    """The rows of the lanes."""
    return columns()[1:-1]


def rows_of(by_lane: Int[Array, " 8"]) -> Int[Array, " 10"]:
    """Numbers by lane, for all rows: −1 where there is no lane."""
    return jnp.pad(by_lane, 1, constant_values=-1)


def ahead(x: Int[Array, "*N"], right: Bool[Array, "*N"]) -> Int[Array, "*N"]:
    """The next column for those that go right, or left; with the direction turned around, the one behind."""
    return jnp.where(right, x + 1, x - 1)


def moved(x: Int[Array, ""], less: Bool[Array, ""], more: Bool[Array, ""], lowest: int, highest: int) -> Int[Array, ""]:
    """A coordinate, one less or one more, between two bounds."""
    return jnp.clip(x - less.astype(jnp.int32) + more.astype(jnp.int32), lowest, highest)


def whole(value: int) -> Int[Array, ""]:
    """A whole number."""
    return jnp.asarray(value, dtype=jnp.int32)


def truth(value: bool) -> Bool[Array, ""]:
    """Yes or no."""
    return jnp.asarray(value, dtype=bool)


def wholes(count: int) -> Int[Array, " N"]:
    """So many zeros."""
    return jnp.zeros((count,), dtype=jnp.int32)


def truths(count: int) -> Bool[Array, " N"]:
    """So many times no."""
    return jnp.zeros((count,), dtype=bool)
