"""Out of device memory: the answer is a sentence with numbers."""

from __future__ import annotations

import re
from typing import Any

import jax
import pytest

from paircredit.envs import DagConfig, make_environment
from paircredit.errors import NotEnoughMemoryError
from paircredit.methods import InnerLoop, make_method, replace_dotted
from paircredit.training import Plan, memory, train
from tests.sentences import refused

GIB = 2**30
DAG = DagConfig(depth=4).build()


def exhausted(message: str) -> Any:
    def program(*_: object) -> None:
        raise jax.errors.JaxRuntimeError(message)

    return program


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> Any:
    def have(number: float | None) -> None:
        monkeypatch.setattr(memory, "_free_bytes", lambda: number)

    return have


@pytest.mark.parametrize("place", ["run_chunk", "start_members"])
def test_training_says_what_to_lower(monkeypatch: pytest.MonkeyPatch, free: Any, place: str) -> None:
    text = f"RESOURCE_EXHAUSTED: Out of memory while trying to allocate {24 * GIB} bytes."
    monkeypatch.setattr(f"paircredit.training.sharding.{place}", exhausted(text))
    free(8.0 * GIB)
    with refused(
        "M = 8 members with B = 16 episodes of T = 4 steps take 24.0 GiB in one piece",
        "it has 8.0 GiB free",
        "lower M to 2 or less (fewer seeds",
        "or B to 4 or less (--method.inner.episodes)",
        "or T to 1",
    ):
        train([make_method("a2c", inner=InnerLoop(episodes=16))] * 8, [DAG] * 8, list(range(8)), Plan(updates=1), 1)


@pytest.mark.parametrize(
    ("message", "room", "numbers", "expected"),
    [
        (
            "allocate 12.5GiB.",
            20.0,
            (64, 16, 120),
            "lower M to 32 or less (fewer seeds or variants in one run) or B to 8",
        ),
        (
            "allocating 107374182400 bytes.",
            20.0,
            (64, 16, 120),
            "M to 8 or less (fewer",
        ),
        ("allocate 100.0GiB", 20.0, (4, 16, 120), "lower B to 2 or less (--method.inner.episodes) or T to 15"),
        ("allocate 100.0GiB", 20.0, (1, 1, 1), "so that their product is 8 times smaller"),
        ("allocate 500.00MiB. [tf-allocator-allocation-error='']", 0.25, (64, 16, 120), "M to 32"),
        ("nothing is said", 20.0, (64, 16, 120), "lower M to 32"),
    ],
)
def test_numbers_are_halved_until_it_fits(
    free: Any, message: str, room: float, numbers: tuple[int, int, int], expected: str
) -> None:
    free(room * GIB)
    with refused(expected), memory.enough_memory(*numbers):
        raise jax.errors.JaxRuntimeError(f"RESOURCE_EXHAUSTED: Out of memory while trying to {message}")


def test_a_device_that_does_not_tell_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_all_bytes", lambda: None)
    with refused("M = 2 members", "lower M to 1"), memory.enough_memory(2, 1, 1):
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 40000000000000 bytes.")


def test_a_real_one() -> None:
    """More than any machine has."""
    with refused("37252.9 GiB in one piece"), memory.enough_memory(2, 1, 1):
        jax.numpy.ones((10**13,), dtype=jax.numpy.float32).block_until_ready()


@pytest.mark.parametrize(
    ("episodes", "advice"),
    [(4, "lower M to 8 or less (fewer seeds or variants in one run) or T to 16"), (64, "or B to 8")],
)
def test_a_cpu_has_the_memory_of_its_machine(monkeypatch: pytest.MonkeyPatch, episodes: int, advice: str) -> None:
    monkeypatch.setattr(memory, "_all_bytes", lambda: 8.0 * GIB)
    with refused("take 64.0 GiB in one piece", "(it has 8.0 GiB)", advice), memory.enough_memory(64, episodes, 128):
        raise jax.errors.JaxRuntimeError(
            f"INTERNAL: Error dispatching computation: Out of memory allocating {64 * GIB} bytes."
        )


def test_other_errors_pass() -> None:
    with pytest.raises(jax.errors.JaxRuntimeError, match="INTERNAL"), memory.enough_memory(2, 1, 1):
        raise jax.errors.JaxRuntimeError("INTERNAL: something else.")


def test_what_cannot_fit_is_refused_before_anything_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_all_bytes", lambda: 8.0 * GIB)
    method = replace_dotted(make_method("a2c"), {"inner.episodes": 10**9}, "a2c")
    with refused("too much for the memory", "lower B to"):
        memory.refuse_batches_too_large([method], make_environment("dag"))
    memory.refuse_batches_too_large([make_method("a2c")] * 100, make_environment("dag"))


def test_learners_that_cannot_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Networks of Key-to-Door have 3.4 million parameters each, and Adam keeps two more numbers of each."""
    env, method = make_environment("key-to-door"), make_method("a2c", env="key-to-door")
    monkeypatch.setattr(memory, "_all_bytes", lambda: 8.0 * GIB)
    with refused(
        "learners of M = 1,000,000 members", "but the device has 8.0 GiB; lower M to ", "or less (fewer seeds"
    ):
        memory.refuse_learners_too_large([method] * 1_000_000, env)
    memory.refuse_learners_too_large([method] * 100, env)


def test_advice_about_batches_is_none_that_learners_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    env, method = make_environment("key-to-door"), make_method("a2c", env="key-to-door")
    monkeypatch.setattr(memory, "_all_bytes", lambda: 8.0 * GIB)
    with pytest.raises(NotEnoughMemoryError) as caught:
        memory.refuse_batches_too_large([method] * 50_000, env)
    found = re.search(r"lower M to ([\d,]+) or less", str(caught.value))
    assert found is not None
    most = int(found[1].replace(",", ""))
    memory.refuse_learners_too_large([method] * most, env)
    with refused("learners of M"):
        memory.refuse_learners_too_large([method] * (most + 1), env)


def test_arrays_of_the_host_count_too() -> None:
    with refused("74.6 GiB", "lower M to"), memory.enough_memory(10**6, 1, 1):
        raise MemoryError("Unable to allocate 74.6 GiB for an array")
