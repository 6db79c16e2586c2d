"""Shapes and types are checked at run time, promotions are strict, hypothesis is repeatable, compilers are quick."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import jax
import jaxtyping
import pytest

import tests.kept_programs
import tests.runtime_checks

if jax.__version_info__ < (0, 11):  # a third less time in the compiler; newer versions do not know the flags
    flags = " --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + flags

KEPT = Path(__file__).parents[1] / ".pytest_cache"
"""What is compiled once, for all workers and the next session; git ignores it, and `make clean` takes it away."""

# Tests start many processes, and where bytecode is not kept each of them compiles all of JAX's source anew.
os.environ |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(KEPT / "bytecode")}
sys.dont_write_bytecode, sys.pycache_prefix = False, str(KEPT / "bytecode")
tests.kept_programs.keep(KEPT / "programs")

gc.set_threshold(20_000, 20, 20)  # tracing makes many objects and few cycles: a tenth of its time went to looking

# Before anything imports the package: the hook rewrites modules while they are imported.
jaxtyping.install_import_hook("paircredit", "tests.runtime_checks.checked")
jax.config.update("jax_numpy_dtype_promotion", "strict")

hypothesis.settings.register_profile("paircredit", deadline=None, derandomize=True, database=None, max_examples=20)
hypothesis.settings.load_profile("paircredit")

MOST_MAPPINGS = 40_000
"""Of memory, after which compiled programs are forgotten."""

CompilerOptions = Callable[[], dict[str, int]]


@pytest.fixture
def x64() -> Iterator[None]:
    """Everything inside the test is float64."""
    with jax.enable_x64(True):
        yield


@pytest.fixture
def users_view() -> Iterator[None]:
    """Without the run-time checks of shapes, which would speak before the library's own errors do."""
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(autouse=True, scope="session")
def quick_compilation() -> Iterator[CompilerOptions]:
    """Nothing is optimised: programs of tests run for milliseconds, and would be optimised for half of all the time."""
    from paircredit.training import loop  # not before the hook above

    options = loop.compiler_options
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "compiler_options", lambda: {"xla_backend_optimization_level": 0})
        jax.config.update("jax_disable_most_optimizations", True)
        yield options
        jax.config.update("jax_disable_most_optimizations", False)


@pytest.fixture(scope="module")
def real_compilation(quick_compilation: CompilerOptions) -> Iterator[None]:
    """Programs as users get them: for tests of what an optimiser could change (equal bits, memory) or that run long."""
    from paircredit.training import loop

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "compiler_options", quick_compilation)
        jax.config.update("jax_disable_most_optimizations", False)
        yield
        jax.config.update("jax_disable_most_optimizations", True)


@pytest.fixture(autouse=True, scope="module")
def room_for_programs() -> Iterator[None]:
    """Every compiled program maps some memory, and a process may have 65,530 mappings: beyond that compilers crash."""
    yield
    maps = Path("/proc/self/maps")
    if maps.exists() and maps.read_bytes().count(b"\n") > MOST_MAPPINGS:
        jax.clear_caches()
        gc.collect()
