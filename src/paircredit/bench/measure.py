"""Compiling and timing one function."""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable
from typing import Any

import jax

from paircredit.bench.profile import Profile, profile
from paircredit.training.loop import compiler_options

WARM_UPS = 2


@dataclasses.dataclass(frozen=True)
class Measurement:
    """What one function costs.

    Attributes:
        seconds: median over the repeats.
        fastest: the least of them.
        compile_seconds: tracing and compiling.
        temporary_bytes: what the compiled program needs beside its arguments and results, by its own account.
        argument_bytes: of its arguments.
        profile: where the time goes, where that was asked for.
    """

    seconds: float
    fastest: float
    compile_seconds: float
    temporary_bytes: int
    argument_bytes: int
    profile: Profile | None = None


def measure(function: Callable, arguments: tuple[Any, ...], repeats: int, *, watched: bool = False) -> Measurement:
    """Compile a function for its arguments as the training loop is compiled, and time it, device work included.

    Args:
        function: what to time.
        arguments: of the call.
        repeats: timed calls.
        watched: watch two more calls with a profiler.
    """
    began = time.perf_counter()
    compiled = jax.jit(function, compiler_options=compiler_options()).lower(*arguments).compile()
    compile_seconds = time.perf_counter() - began
    for _ in range(WARM_UPS):
        jax.block_until_ready(compiled(*arguments))
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        jax.block_until_ready(compiled(*arguments))
        times.append(time.perf_counter() - began)
    memory = compiled.memory_analysis()
    return Measurement(
        seconds=statistics.median(times),
        fastest=min(times),
        compile_seconds=compile_seconds,
        temporary_bytes=int(getattr(memory, "temp_size_in_bytes", 0)),
        argument_bytes=int(getattr(memory, "argument_size_in_bytes", 0)),
        profile=profile(compiled, arguments) if watched else None,
    )
