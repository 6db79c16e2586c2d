"""More than the device's memory holds: a sentence says which numbers to lower."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import Any

import jax

from paircredit.envs.protocol import Environment, Pixels, Vector
from paircredit.errors import NotEnoughMemoryError
from paircredit.training.members import shares

_SIGNS = ("RESOURCE_EXHAUSTED", "Out of memory")
"""What XLA calls it; within a program on a CPU it is an internal error."""
_FEW = 16
"""Members whose parameters are not counted: nobody has such large networks here."""


@contextlib.contextmanager
def enough_memory(members: int, episodes: int, horizon: int) -> Iterator[None]:
    """Around a program of M members, B episodes and T steps: where memory runs out, a sentence says what to lower."""
    try:
        yield
    except (MemoryError, jax.errors.JaxRuntimeError) as error:
        if not isinstance(error, MemoryError) and not any(sign in str(error) for sign in _SIGNS):
            raise
        raise _too_much(members, episodes, horizon) from error


def refuse_too_large(methods: Sequence[Any], env: Environment) -> None:
    """Refuse observations and learners that alone are larger than the device's memory, before anything is compiled."""
    room, method, seen, horizon = _device_bytes(), methods[0], env.spec.observation, env.spec.horizon
    if room is None:
        return
    members = len(methods) // shares(len(methods), jax.local_device_count())
    if isinstance(seen, Pixels):
        each = seen.height * seen.width * seen.channels
    else:
        each = 4 * (seen.size if isinstance(seen, Vector) else 1)
    needed = members * method.episodes * horizon * each
    if needed <= room and (method.setting_of_memory or len(methods) > _FEW):
        learner = jax.eval_shape(lambda key: method.init(key, env), jax.random.key(0))
        needed = members * sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(learner))
    if needed > room:
        gib = f" (they take {needed / 2**30:,.1f} GiB, and it has {room / 2**30:.1f} GiB)"
        raise _too_much(members, method.episodes, horizon, gib, method.setting_of_memory)


def _too_much(members: int, episodes: int, horizon: int, how_much: str = "", setting: str = "") -> NotEnoughMemoryError:
    stored = f", what they store (--method.{setting})" if setting else ""
    return NotEnoughMemoryError(
        f"M = {members:,} members with B = {episodes:,} episodes of T = {horizon:,} steps are too much for the memory "
        f"of the device{how_much}; lower M (fewer seeds or variants in one run){stored}, B (--method.inner.episodes) "
        "or T (a shorter environment)."
    )


def _device_bytes() -> int | None:
    """Those of the first device, where it tells; a CPU has the memory of its machine."""
    device = jax.local_devices()[0]
    if device.platform == "cpu" and hasattr(os, "sysconf"):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return (device.memory_stats() or {}).get("bytes_limit")
