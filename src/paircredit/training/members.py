"""The member axis: many training runs as one array program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from paircredit.errors import PaircreditError
from paircredit.types import is_key


def stack_members(members: Sequence[Any]) -> Any:
    """Stack methods or environments along a new leading axis.

    Raises:
        PaircreditError: they differ in something that shapes the program.
    """
    if not members:
        raise PaircreditError("There are no members to train.")
    first = members[0]
    for member in members[1:]:
        if _structure(member) != _structure(first):
            raise PaircreditError(
                "Members of one program must agree in everything that is not a number to be traced, shapes included; "
                f"{_one_line(first)} and {_one_line(member)} do not."
            )
    return jax.tree.map(_stack, *members)


SEEDS = range(2**32)
"""Random generators look at 32 bits of a seed and no more: larger ones and negative ones would repeat these."""


def refuse_seeds(seeds: Sequence[int]) -> None:
    """Refuse seeds that generators could not tell apart from others.

    Raises:
        PaircreditError: there is one.
    """
    for seed in seeds:
        if seed not in SEEDS:
            size = "small" if seed < 0 else "large"
            raise PaircreditError(f"The seed {seed} is too {size}; take one between {SEEDS[0]} and {SEEDS[-1]}.")


def member_keys(seeds: Sequence[int]) -> Key[Array, " M"]:
    """One generator per seed; a member's draws do not depend on who trains beside it."""
    refuse_seeds(seeds)
    return jax.vmap(jax.random.key)(np.asarray(seeds, dtype=np.uint32))


def _stack(*leaves: Any) -> Array:
    """On the host, which saves compiling a program for every shape; random keys cannot leave the device."""
    if is_key(leaves[0]):
        return jnp.stack(leaves)
    return jnp.asarray(np.stack([np.asarray(leaf) for leaf in leaves]))


def _structure(member: Any) -> tuple[Any, list[tuple[int, ...]]]:
    return jax.tree.structure(member), [jnp.shape(leaf) for leaf in jax.tree.leaves(member)]


def _one_line(member: Any) -> str:
    return " ".join(repr(member).split())
