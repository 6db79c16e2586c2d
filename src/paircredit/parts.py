"""Names for the parts of an update, which the compiler carries along and profiles show."""

from __future__ import annotations

from contextlib import AbstractContextManager

import jax

SCOPE = "part:"
"""Begins the names of parts, so that they are found among other names."""


def part(name: str) -> AbstractContextManager[None]:
    """What is traced within belongs to this part; parts may lie within parts.

    Args:
        name: small letters.
    """
    scope: AbstractContextManager[None] = jax.named_scope(SCOPE + name)
    return scope
