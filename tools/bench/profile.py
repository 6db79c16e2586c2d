"""Where the time of a compiled program goes: operations on the device by the part of an update that they belong to.

The parts are named in the code (`paircredit.parts`), and the compiler carries the names along. What it fuses counts
for the part of the fusion's last operation, what two parts share for one of them.
"""

from __future__ import annotations

import dataclasses
import re
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax

from paircredit.methods.loops import SCOPE

OTHER = "other"
_INSTRUCTION = re.compile(r"^\s*(?:ROOT )?%?([\w.-]+) = .*? ([\w-]+)\(([^)]*)\)")
_NAME = re.compile(r'op_name="([^"]*)"')
_OPERAND = re.compile(r"%([\w.-]+)")
_FARTHEST_USER = 4
"""Steps from an operation without a part to one that has one."""
_PART = re.compile(re.escape(SCOPE) + r"([a-z]+)")
_AROUND = ("while", "call", "conditional")
"""Operations that only contain others."""


@dataclasses.dataclass(frozen=True)
class Share:
    """What one operation or one part takes of a call.

    Attributes:
        name: of the operation; of the part where it is a part.
        part: parts around it, outermost first, joined by `/`.
        seconds: on the device.
        launches: how often it ran.
    """

    name: str
    part: str
    seconds: float
    launches: float


@dataclasses.dataclass(frozen=True)
class Profile:
    """Where the time of one call goes.

    Attributes:
        wall_seconds: from call to result, while being watched.
        busy_seconds: of it some operation ran on the device.
        parts: the longest first.
        operations: the longest first.
    """

    wall_seconds: float
    busy_seconds: float
    parts: tuple[Share, ...]
    operations: tuple[Share, ...]


def one_by_one() -> dict[str, Any]:
    """What the compiler is told for a program that will be watched.

    On a GPU it gathers operations into graphs that are launched as one, and a profiler sees the graphs only. Launched
    one by one the operations take a little longer together.
    """
    return {"xla_gpu_graph_min_graph_size": 2**30} if jax.default_backend() == "gpu" else {}


def profile(compiled: Any, arguments: tuple[Any, ...], calls: int = 2) -> Profile:
    """Watch some calls of a compiled program.

    Args:
        compiled: what `jax.jit(…).lower(…).compile()` gave.
        arguments: of the call.
        calls: to watch; numbers are per call.
    """
    jax.block_until_ready(compiled(*arguments))
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            began = time.perf_counter()
            for _ in range(calls):
                jax.block_until_ready(compiled(*arguments))
            wall = time.perf_counter() - began
        events = [event for path in Path(folder).rglob("*.xplane.pb") for event in _events(path)]
    kinds, parts = operations_of(compiled.as_text())
    events = [event for event in events if kinds.get(event[0]) not in _AROUND]
    return summarise(events, parts, wall, calls)


def operations_of(text: str) -> tuple[dict[str, str], dict[str, str]]:
    """Of every operation in a program's text its kind, and the part that it belongs to.

    An operation that the compiler left without a name (products on a CPU) belongs to the part of the first one that
    uses its result.
    """
    kinds: dict[str, str] = {}
    parts: dict[str, str] = {}
    users: dict[str, list[str]] = defaultdict(list)
    for line in text.splitlines():
        found = _INSTRUCTION.match(line)
        if not found:
            continue
        operation, kinds[operation], operands = found[1], found[2], found[3]
        named = _NAME.search(line)
        scopes = dict.fromkeys(_PART.findall(named[1])) if named else {}
        if scopes:
            parts[operation] = "/".join(scopes)
        for operand in _OPERAND.findall(operands):
            users[operand].append(operation)
    for _ in range(_FARTHEST_USER):
        nameless = {operation: users[operation] for operation in kinds if operation not in parts}
        parts |= {name: parts[own[0]] for name, all_of_them in nameless.items() if (own := _known(all_of_them, parts))}
    return kinds, parts


def _known(operations: list[str], parts: Mapping[str, str]) -> list[str]:
    return [operation for operation in operations if operation in parts]


def summarise(events: list[tuple[str, float, float]], part_of: Mapping[str, str], wall: float, calls: int) -> Profile:
    """Sum up what ran.

    Args:
        events: name of the operation, begin and duration in seconds.
        part_of: the part of an operation; what is not in it belongs to none.
        wall: seconds of all calls.
        calls: that were watched.
    """
    seconds: dict[tuple[str, str], float] = defaultdict(float)
    launches: dict[tuple[str, str], int] = defaultdict(int)
    for name, _, duration in events:
        part = part_of.get(name, OTHER)
        for key in ((name, part), ("", part)):
            seconds[key] += duration
            launches[key] += 1
    shares = [
        Share(name or part, part, seconds[name, part] / calls, launches[name, part] / calls) for name, part in seconds
    ]
    longest = sorted(zip(seconds, shares, strict=True), key=lambda pair: -pair[1].seconds)
    return Profile(
        wall_seconds=wall / calls,
        busy_seconds=_covered([(begin, begin + duration) for _, begin, duration in events]) / calls,
        parts=tuple(share for (name, _), share in longest if not name),
        operations=tuple(share for (name, _), share in longest if name),
    )


def _covered(spans: list[tuple[float, float]]) -> float:
    """The length of the union of some intervals."""
    total, reached = 0.0, float("-inf")
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return total


def _events(path: Path) -> list[tuple[str, float, float]]:
    """What compiled operations did on the device, by a trace of XLA's profiler."""
    found = []
    with warnings.catch_warnings():  # raised while a type of the reader's is made, where an exception is fatal
        warnings.filterwarnings("ignore", message=".*has no __module__ attribute", category=DeprecationWarning)
        data = jax.profiler.ProfileData.from_file(str(path))
        for plane in data.planes:
            on_device = plane.name.startswith("/device:")
            for line in plane.lines:
                if on_device and not line.name.startswith("Stream"):  # other lines show the same again, summed up
                    continue
                for event in line.events:
                    operation = dict(event.stats).get("hlo_op")
                    if (operation is None and not on_device) or event.name.startswith("end: "):
                        continue
                    name = event.name if operation is None else str(operation)
                    found.append((name, event.start_ns * 1e-9, event.duration_ns * 1e-9))
    return found
