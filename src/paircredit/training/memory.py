"""Out of device memory: which numbers to lower, and to what."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterator

import jax

from paircredit.errors import PaircreditError

_UNITS = {"": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_REQUEST = re.compile(r"allocat\w*\s+([\d.]+)\s*(KiB|MiB|GiB|TiB|)")


@contextlib.contextmanager
def enough_memory(members: int, episodes: int, horizon: int) -> Iterator[None]:
    """Around a program: if the device's memory does not suffice, a sentence says what to lower.

    Args:
        members: M, trained side by side.
        episodes: B, of a batch.
        horizon: T, steps of an episode.

    Raises:
        PaircreditError: there was not enough.
    """
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        raise PaircreditError(_sentence(str(error), members, episodes, horizon, _free_bytes())) from error


def _sentence(message: str, members: int, episodes: int, horizon: int, free: float | None) -> str:
    """Each of the numbers, halved until it fits; what is needed grows at least in proportion to each."""
    wanted = _requested_bytes(message)
    halvings = 1
    if wanted is not None and free:
        halvings = max(1, math.ceil(math.log2(wanted / free)))
    size = f" take {wanted / 2**30:.1f} GiB in one piece, which is" if wanted is not None else " are"
    room = f" (it has {free / 2**30:.1f} GiB free)" if free is not None else ""
    ways = [
        f"{letter} to {number >> halvings} ({how})"
        for letter, number, how in (
            ("M", members, "fewer seeds or variants in one run"),
            ("B", episodes, "--method.inner.episodes"),
            ("T", horizon, "a shorter environment"),
        )
        if number >> halvings
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
