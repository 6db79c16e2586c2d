"""Out of device memory: the answer is a sentence that says what to lower."""

from __future__ import annotations

from typing import Any

import jax
import pytest

from paircredit.envs import make_environment
from paircredit.envs.dag import DagConfig
from paircredit.methods import InnerLoop, make_method, replace_dotted
from paircredit.training import Plan, members, train
from tests.sentences import refused

GIB = 2**30
DAG = DagConfig(depth=4).build()


@pytest.fixture
def eight_gib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members, "_device_bytes", lambda: 8 * GIB)


@pytest.mark.parametrize("place", ["run_chunk", "start_members"])
def test_training_says_what_to_lower(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    def program(*_: object) -> None:
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 24.0GiB.")

    monkeypatch.setattr(f"paircredit.training.members.{place}", program)
    with refused(
        "M = 8 members with B = 16 episodes of T = 4 steps are too much for the memory of the device; lower M",
        "(fewer seeds",
        "B (--method.inner.episodes) or T",
    ):
        train([make_method("a2c", inner=InnerLoop(episodes=16))] * 8, [DAG] * 8, list(range(8)), Plan(updates=1), 1)


@pytest.mark.parametrize(
    "error",
    [
        jax.errors.JaxRuntimeError("INTERNAL: Error dispatching computation: Out of memory allocating 9 bytes."),
        MemoryError("Unable to allocate 74.6 GiB for an array"),
    ],
)
def test_whoever_runs_out(error: Exception) -> None:
    with refused("M = 1,000,000 members", "lower M"), members.enough_memory(10**6, 1, 1):
        raise error


def test_a_real_one() -> None:
    """More than any machine has."""
    with refused("M = 2 members"), members.enough_memory(2, 1, 1):
        jax.numpy.ones((10**13,), dtype=jax.numpy.float32).block_until_ready()


def test_other_errors_pass() -> None:
    with pytest.raises(jax.errors.JaxRuntimeError, match="INTERNAL"), members.enough_memory(2, 1, 1):
        raise jax.errors.JaxRuntimeError("INTERNAL: something else.")


def test_a_device_that_does_not_tell_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members, "_device_bytes", lambda: None)
    members.refuse_too_large([replace_dotted(make_method("a2c"), {"inner.episodes": 10**9}, "a2c")], DAG)


def test_batches_that_cannot_fit_are_refused_before_anything_is_compiled(eight_gib: Any) -> None:
    method = replace_dotted(make_method("a2c"), {"inner.episodes": 10**9}, "a2c")
    with refused("too much for the memory", "and it has 8.0 GiB", "B (--method.inner.episodes)"):
        members.refuse_too_large([method], make_environment("dag"))
    members.refuse_too_large([make_method("a2c")] * 100, make_environment("dag"))


def test_learners_that_cannot_fit_are_refused(eight_gib: Any) -> None:
    """Networks of Key-to-Door have 3.4 million parameters each, and Adam keeps another number of each: 26 MiB."""
    env, method = make_environment("key-to-door"), make_method("a2c", env="key-to-door")
    with refused("M = 1,000 members", "and it has 8.0 GiB", "lower M (fewer seeds"):
        members.refuse_too_large([method] * 1000, env)
    members.refuse_too_large([method] * 100, env)
