"""Compiling and timing functions."""

from __future__ import annotations

import dataclasses
import os
import statistics
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax

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
    """

    seconds: float
    fastest: float
    compile_seconds: float
    temporary_bytes: int
    argument_bytes: int


class Program(NamedTuple):
    """A function that is compiled for its arguments, and how long that took."""

    compiled: Any
    arguments: tuple[Any, ...]
    compile_seconds: float


def compile_program(
    function: Callable, arguments: tuple[Any, ...], options: Mapping[str, Any] | None = None
) -> Program:
    """Compile a function for its arguments as the training loop is compiled, with more options for the compiler."""
    began = time.perf_counter()
    compiled = jax.jit(function, compiler_options={**compiler_options(), **(options or {})}).lower(*arguments).compile()
    return Program(compiled, arguments, time.perf_counter() - began)


def compile_all(functions: Mapping[str, tuple[Callable, tuple[Any, ...]]]) -> dict[str, Program]:
    """Compile several functions side by side, as many at a time as there are cores."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        waiting = {name: pool.submit(compile_program, *one) for name, one in functions.items()}
        return {name: one.result() for name, one in waiting.items()}


def measure(program: Program, repeats: int) -> Measurement:
    """Time a program, device work included.

    Args:
        program: what to time.
        repeats: timed calls.
    """
    compiled, arguments, compile_seconds = program
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
    )
