"""Out of device memory, or too large for it from the start: which numbers to lower, and to what."""

from __future__ import annotations

import contextlib
import math
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

import jax

from paircredit.envs.protocol import Environment, Pixels, Vector
from paircredit.errors import NotEnoughMemoryError
from paircredit.training.sharding import shares

_UNITS = {"": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_SIGNS = ("RESOURCE_EXHAUSTED", "Out of memory")
"""Of exhaustion; inside a program a CPU calls it an internal error."""
_FEW = 16
"""Members whose parameters are not counted: nobody has such large networks here."""
_REQUEST = re.compile(r"allocat\w*\s+([\d.]+)\s*(KiB|MiB|GiB|TiB|)")


@contextlib.contextmanager
def enough_memory(members: int, episodes: int, horizon: int) -> Iterator[None]:
    """Around a program: if the device's memory does not suffice, a sentence says what to lower.

    Args:
        members: M, trained side by side.
        episodes: B, of a batch.
        horizon: T, steps of an episode.

    Raises:
        NotEnoughMemoryError: there was not enough.
    """
    try:
        yield
    except MemoryError as error:
        raise NotEnoughMemoryError(_sentence(_requested_bytes(str(error)), members, episodes, horizon)) from error
    except jax.errors.JaxRuntimeError as error:
        if not any(sign in str(error) for sign in _SIGNS):
            raise
        raise NotEnoughMemoryError(_sentence(_requested_bytes(str(error)), members, episodes, horizon)) from error


def refuse_learners_too_large(methods: Sequence[Any], env: Environment) -> None:
    """Refuse learners that alone are larger than the device's memory, before anything is computed.

    Methods that keep much beside their parameters name the setting which decides how much, as `setting_of_memory`.

    Args:
        methods: one per member, of the same structure.
        env: an environment of the shape of all of them.

    Raises:
        NotEnoughMemoryError: they do not fit.
    """
    room, setting = _all_bytes(), methods[0].setting_of_memory
    if room is None or (not setting and len(methods) <= _FEW):
        return
    each = _learner_bytes(methods[0], env)
    members = len(methods) // shares(len(methods), jax.local_device_count())
    if members * each > room:
        most = int(room // each)
        less = f"what they keep (--method.{setting}) by a factor of {members * each / room:.1f} or more"
        fewer = f"M to {most:,} or less (fewer seeds or variants in one run)"
        ways = [less] * bool(setting) + [fewer] * (most > 0) or ["the size of the networks"]
        raise NotEnoughMemoryError(
            f"The learners of M = {members:,} members with episodes of T = {env.spec.horizon} steps take "
            f"{members * each / 2**30:,.1f} GiB, but the device has {room / 2**30:.1f} GiB; lower "
            f"{' or '.join(ways)}."
        )


def refuse_batches_too_large(methods: Sequence[Any], env: Environment) -> None:
    """Refuse batches whose observations alone are larger than the device's memory, before anything is compiled.

    Args:
        methods: one per member, of the same structure.
        env: an environment of the shape of all of them.

    Raises:
        NotEnoughMemoryError: they do not fit.
    """
    room, spec = _all_bytes(), env.spec
    members = len(methods) // shares(len(methods), jax.local_device_count())
    needed = float(members * methods[0].episodes * spec.horizon * _bytes_seen(spec.observation))
    if room is not None and needed > room:
        most = int(room // _learner_bytes(methods[0], env)) if members > _FEW else members
        raise NotEnoughMemoryError(_sentence(needed, members, methods[0].episodes, spec.horizon, most))


def _learner_bytes(method: Any, env: Environment) -> int:
    """Of one member's learner."""
    learner = jax.eval_shape(lambda key: method.init(key, env), jax.random.key(0))
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(learner))


def _bytes_seen(observation: Any) -> int:
    """Of one observation, at the least."""
    if isinstance(observation, Pixels):
        return observation.height * observation.width * observation.channels
    return 4 * (observation.size if isinstance(observation, Vector) else 1)


def _sentence(wanted: float | None, members: int, episodes: int, horizon: int, most_members: int | None = None) -> str:
    """Each of the numbers, halved until it fits; what is needed grows at least in proportion to each.

    Args:
        wanted: bytes, if known.
        members: M.
        episodes: B.
        horizon: T.
        most_members: whose learners fit, if known.
    """
    free = _free_bytes()
    most = _all_bytes() if free is None else free
    halvings = 1
    if wanted is not None and most:
        halvings = max(1, math.ceil(math.log2(wanted / most)))
    size = f" take {wanted / 2**30:.1f} GiB in one piece, which is" if wanted is not None else " are"
    room = f" (it has {most / 2**30:.1f} GiB{' free' * (free is not None)})" if most is not None else ""
    fewer = members >> halvings if most_members is None else min(members >> halvings, most_members)
    ways = [
        f"{letter} to {number:,} or less ({how})"
        for letter, number, how in (
            ("M", fewer, "fewer seeds or variants in one run"),
            ("B", episodes >> halvings, "--method.inner.episodes"),
            ("T", horizon >> halvings, "a shorter environment"),
        )
        if number
    ]
    lower = " or ".join(ways) or f"M, B and T so that their product is {2**halvings} times smaller"
    return (
        f"M = {members} members with B = {episodes} episodes of T = {horizon} steps{size} too much for the memory of "
        f"the device{room}; lower {lower}."
    )


def _requested_bytes(message: str) -> float | None:
    """The largest piece that the message speaks of."""
    found = [float(number) * _UNITS[unit] for number, unit in _REQUEST.findall(message) if number.strip(".")]
    return max(found, default=None)


def _free_bytes() -> float | None:
    """On the first device, where it tells."""
    statistics = jax.local_devices()[0].memory_stats() or {}
    if "bytes_limit" not in statistics:
        return None
    return float(statistics["bytes_limit"] - statistics.get("bytes_in_use", 0))


def _all_bytes() -> float | None:
    """On the first device, where it tells; a CPU has the memory of its machine."""
    device = jax.local_devices()[0]
    statistics = device.memory_stats() or {}
    if "bytes_limit" in statistics:
        return float(statistics["bytes_limit"])
    if device.platform != "cpu" or not hasattr(os, "sysconf"):
        return None
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
