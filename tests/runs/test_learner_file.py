"""What a run keeps of its learner: the same bytes however it came to its end, and refused when it does not fit."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.runs import RunWriter, read_run
from paircredit.runs.folder import finished_already
from tests.experiments.test_resume import Killed, killed_before
from tests.sentences import refused

SPEC = {"name": "run"}
TREE = {
    "policy": (jnp.arange(6.0).reshape(2, 3), jnp.ones((), jnp.bfloat16)),
    "key": jax.random.key(3),
    "weights": {"table": np.linspace(0, 1, 5, dtype=np.float32)},
}


def make(path: Path, operation: float = np.inf) -> list[str]:
    """Write a run with a learner, or go on with it, until the end or until killed."""
    with killed_before(operation) as seen:
        try:
            if not finished_already(path, "training", SPEC):
                with RunWriter(path, "training", SPEC, go_on=True, like=lambda: {"n": jnp.zeros(2)}) as writer:
                    if writer.resumed is None:
                        writer.append([{"update": 0}])
                        writer.save(1, {"n": jnp.ones(2)})
                    writer.append([{"update": 1}])
                    writer.finish({"a": np.ones(3)}, TREE)
        except Killed:
            pass
    gc.collect()
    return seen


@pytest.fixture(autouse=True)
def quick_collections() -> Iterator[None]:
    """What is there already need not be looked at again after every kill: with other tests before, that is a lot."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def run(tmp_path: Path) -> Path:
    make(tmp_path / "run")
    return tmp_path / "run"


def assert_tree(tree: Any) -> None:
    assert jax.tree.structure(tree) == jax.tree.structure(TREE)
    for one, other in zip(jax.tree.leaves(tree), jax.tree.leaves(TREE), strict=True):
        assert one.dtype == other.dtype
        if jnp.issubdtype(one.dtype, jax.dtypes.prng_key):
            one, other = jax.random.key_data(one), jax.random.key_data(other)
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


def test_it_comes_back_and_is_in_the_manifest(run: Path) -> None:
    read = read_run(run)
    assert_tree(read.learner(TREE))
    assert read.manifest["files"]["learner.npz"]["bytes"] == (run / "learner.npz").stat().st_size
    with np.load(run / "learner.npz", allow_pickle=False) as file:
        assert "['weights']['table']" in file.files


def test_parts_of_rules_are_found_where_earlier_versions_wrote_them(tmp_path: Path) -> None:
    """Then they stood beside the policy; now they are in `own`."""

    class Before(eqx.Module):
        policy: jax.Array
        contribution: dict[str, jax.Array]

    class Now(eqx.Module):
        policy: jax.Array
        own: Any

    class Own(eqx.Module):
        contribution: dict[str, jax.Array]

    parts = {"later": jnp.arange(3.0)}
    with RunWriter(tmp_path / "run", "training", SPEC) as writer:
        writer.append([{"update": 0}])
        writer.finish({"a": np.ones(3)}, Before(jnp.ones(2), parts))
    found = read_run(tmp_path / "run").learner(Now(jnp.zeros(2), Own({"later": jnp.zeros(3)})))
    np.testing.assert_array_equal(found.own.contribution["later"], parts["later"])


def test_killed_at_every_change_of_the_disk_it_ends_with_the_same_bytes(tmp_path: Path) -> None:
    seen = make(tmp_path / "whole" / "run")
    assert seen.count("replace") == 5, "two manifests, a checkpoint, arrays and learner"
    expected = (tmp_path / "whole" / "run" / "learner.npz").read_bytes()
    names = sorted(path.name for path in (tmp_path / "whole" / "run").iterdir())
    assert names == ["arrays.npz", "learner.npz", "manifest.json", "metrics.jsonl"]
    for operation in range(seen.index("replace", 8), len(seen)):  # the others are those of any run
        path = tmp_path / str(operation) / "run"
        make(path, operation)
        make(path)
        assert (path / "learner.npz").read_bytes() == expected
        assert sorted(file.name for file in path.iterdir()) == names
        assert_tree(read_run(path).learner(TREE))


def test_a_leftover_of_an_earlier_end_is_not_taken_for_the_runs_own(tmp_path: Path) -> None:
    path = tmp_path / "run"
    RunWriter(path, "training", SPEC)._lock.release()
    (path / "learner.npz").write_bytes(b"old")
    with RunWriter(path, "training", SPEC, go_on=True) as writer:
        writer.finish()
    assert not (path / "learner.npz").exists()
    assert read_run(path).manifest["files"] == {}
    with refused("has no learner.npz", "older versions", "train it again"):
        read_run(path).learner(TREE)


@pytest.mark.parametrize(
    ("like", "difference"),
    [
        (TREE | {"more": jnp.zeros(1)}, "the file lacks ['more']"),
        ({"key": TREE["key"]}, "only the file has"),
        (TREE | {"weights": {"table": np.zeros(6, np.float32)}}, "float32[5] there and float32[6] here"),
        (TREE | {"weights": {"table": np.zeros(5, np.float16)}}, "float32[5] there and float16[5] here"),
    ],
)
def test_another_shape_is_refused(run: Path, like: Any, difference: str) -> None:
    with refused("learner.npz", difference, "train it again"):
        read_run(run).learner(like)


def test_damage_is_refused(run: Path) -> None:
    file = run / "learner.npz"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(bytes(content))
    with refused("learner.npz is damaged", "Remove the run's folder"):
        read_run(run).learner(TREE)
    file.unlink()
    with refused("learner.npz cannot be read"):
        read_run(run).learner(TREE)
