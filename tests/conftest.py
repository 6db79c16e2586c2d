"""Shapes and types are checked at run time, promotions are strict, hypothesis is repeatable."""

from __future__ import annotations

import os
from collections.abc import Iterator

import hypothesis
import jax
import jaxtyping
import pytest

import tests.runtime_checks  # noqa: F401  (the hook below looks it up by name)

if jax.__version_info__ < (0, 11):  # a third less time in the compiler; newer versions do not know the flag
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_cpu_use_fusion_emitters=false"

# Before anything imports the package: the hook rewrites modules while they are imported.
jaxtyping.install_import_hook("paircredit", "tests.runtime_checks.checked")
jax.config.update("jax_numpy_dtype_promotion", "strict")

hypothesis.settings.register_profile("paircredit", deadline=None, derandomize=True, database=None, max_examples=30)
hypothesis.settings.load_profile("paircredit")


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


@pytest.fixture
def quick_compilation() -> Iterator[None]:
    """Programs are compiled without optimisation: for those that run for milliseconds."""
    jax.config.update("jax_disable_most_optimizations", True)
    try:
        yield
    finally:
        jax.config.update("jax_disable_most_optimizations", False)
