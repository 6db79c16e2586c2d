"""A run that was stopped, anywhere and however often, ends as if it had not been."""

from __future__ import annotations

import dataclasses
import gc
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from paircredit.experiments import TrainingSpec, training_run
from paircredit.experiments.spec import as_json
from paircredit.experiments.training_run import Silent, run_training
from paircredit.runs import read_run
from paircredit.runs.folder import finished_already
from paircredit.studies.key_to_door import runs as key_to_door
from tests.experiments.conftest import Counted
from tests.rungs import nightly_but
from tests.sentences import refused

ONLINE = TrainingSpec("run", "dag", "meta-pwr", 47, (0, 1), {"depth": 4})
RESET = TrainingSpec("run", "dag", "meta-pwtd", 47, (0, 1), {"depth": 4}, protocol="reset", inner_updates=2)
FIXED = TrainingSpec("run", "dag", "h-pwr", 47, (0, 1), {"depth": 4})


class Killed(BaseException):
    """Nothing in the package catches it."""


@contextmanager
def killed_before(operation: float) -> Iterator[list[str]]:
    """From the given change of the disk on, counted from 0, nothing reaches the disk any more."""
    seen: list[str] = []

    def counted(name: str) -> Any:
        real = getattr(os, name)

        def call(*arguments: Any, **more: Any) -> Any:
            if len(seen) >= operation:
                raise Killed(name)
            seen.append(name)
            return real(*arguments, **more)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in ("fsync", "replace", "rename", "unlink", "truncate", "mkdir", "write"):
            patch.setattr(os, name, counted(name))
        yield seen


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The learners that trainings of this test ended with; chunks are short."""
    learners, real = [], training_run.train

    def train(*arguments: Any, **more: Any) -> Any:
        state = real(*arguments, **more)
        learners.append(jax.device_get(state.learner))
        return state

    monkeypatch.setattr(training_run, "train", train)
    monkeypatch.setattr(training_run, "LARGEST_CHUNK", 10)
    gc.freeze()  # what is there already need not be looked at again after every kill
    yield learners
    gc.unfreeze()


def make(spec: TrainingSpec, folder: Path, operation: float = np.inf) -> list[str]:
    """Train with a checkpoint after every chunk, until the end or until killed."""
    with killed_before(operation) as seen:
        try:
            if not finished_already(folder / spec.name, "training", as_json(spec)):
                run_training(spec, folder, Silent(), checkpoint_seconds=0.0)
            return seen
        except Killed:
            pass
    gc.collect()  # as at the end of a process, the lock goes with the writer
    return seen


def assert_same(run: Path, expected: Path) -> None:
    """Metrics byte for byte, arrays bit for bit, nothing left behind."""
    assert (run / "metrics.jsonl").read_bytes() == (expected / "metrics.jsonl").read_bytes()
    arrays, wanted = read_run(run).arrays(), read_run(expected).arrays()
    assert arrays.keys() == wanted.keys()
    for name, array in arrays.items():
        assert array.dtype == wanted[name].dtype
        np.testing.assert_array_equal(array, wanted[name])
    kept = ["learner.npz"] if (expected / "learner.npz").exists() else []
    assert sorted(path.name for path in run.iterdir()) == ["arrays.npz", *kept, "manifest.json", "metrics.jsonl"]
    for name in kept:
        assert (run / name).read_bytes() == (expected / name).read_bytes()


def assert_same_learner(one: Any, other: Any) -> None:
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(a, b)


def test_killed_at_every_single_change_of_the_disk(tmp_path: Path, trained: list[Any]) -> None:
    """Before the folder is there, in the middle of a checkpoint, between the arrays and the manifest: everywhere."""
    seen = make(ONLINE, tmp_path / "whole")
    whole = trained.pop()
    assert seen.count("replace") == 7, "the first manifest, four checkpoints, the arrays, the last manifest"
    for operation in range(len(seen)):
        make(ONLINE, tmp_path / str(operation), operation)
        make(ONLINE, tmp_path / str(operation))
        assert_same(tmp_path / str(operation) / "run", tmp_path / "whole" / "run")
        assert_same_learner(trained[-1], whole)


@pytest.mark.parametrize(
    "spec", [pytest.param(RESET, marks=pytest.mark.nightly), FIXED], ids=["reset", "fixed weights"]
)
def test_killed_again_and_again(tmp_path: Path, trained: list[Any], spec: TrainingSpec) -> None:
    make(spec, tmp_path / "whole")
    whole, chance, kills = trained.pop(), random.Random(5), 0
    while not trained:
        make(spec, tmp_path, chance.randrange(3, 16))
        kills += 1
    assert kills > 3
    make(spec, tmp_path)
    assert_same(tmp_path / "run", tmp_path / "whole" / "run")
    assert_same_learner(trained[-1], whole)
    assert len(read_run(tmp_path / "run").manifest["resumptions"]) >= kills - 1


@pytest.mark.slow
@pytest.mark.parametrize("method", nightly_but(["a2c"], ["a2c", "meta-pwr"]))
def test_networks_go_on_exactly_too(
    method: str, tmp_path: Path, trained: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training_run, "LARGEST_CHUNK_OF_PICTURES", 2)
    spec = key_to_door.training("run", method, key_to_door.small(6 * 16 * 20, 2))
    seen = make(spec, tmp_path / "whole")
    make(spec, tmp_path, len(seen) - 8)
    assert (tmp_path / "run" / "checkpoint-4.npz").exists()
    make(spec, tmp_path)
    assert (tmp_path / "run" / "learner.npz").exists()
    assert_same(tmp_path / "run", tmp_path / "whole" / "run")
    assert_same_learner(trained[-1], trained[0])


@pytest.fixture
def stopped(tmp_path: Path, trained: list[Any]) -> Path:
    """A run that was stopped between its last checkpoint, after 40 updates, and its end."""
    seen = make(ONLINE, tmp_path / "whole")
    make(ONLINE, tmp_path, len(seen) - 8)
    assert sorted(path.name for path in (tmp_path / "run").glob("*.npz"))[-2:] == [
        "checkpoint-30.npz",
        "checkpoint-40.npz",
    ]
    return tmp_path / "run"


def test_progress_goes_on_where_it_was(stopped: Path) -> None:
    progress = Counted()
    run_training(ONLINE, stopped.parent, progress)
    assert progress.begun == progress.advanced == {"run": 47}
    assert progress.started == {"run": 40}
    assert progress.said == []


def test_a_damaged_checkpoint_is_told_and_the_older_one_used(stopped: Path) -> None:
    newest, progress = stopped / "checkpoint-40.npz", Counted()
    newest.write_bytes(newest.read_bytes()[:-1000])
    run_training(ONLINE, stopped.parent, progress)
    assert len(progress.said) == 1 and "checkpoint-40.npz is damaged" in progress.said[0]
    assert progress.started == {"run": 30}
    assert_same(stopped, stopped.parent / "whole" / "run")


def test_weights_over_training_survive(stopped: Path) -> None:
    run_training(ONLINE, stopped.parent, Silent())
    np.testing.assert_array_equal(read_run(stopped).arrays()["snapshot_updates"], [10, 20, 30, 40, 47])


def test_chunks_of_another_size_are_refused(stopped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training_run, "LARGEST_CHUNK", 5)
    with refused("checkpoint-40.npz was made with other numbers"):
        run_training(ONLINE, stopped.parent, Silent())


def test_a_weights_file_that_has_changed_is_refused(tmp_path: Path, trained: list[Any]) -> None:
    spec = dataclasses.replace(FIXED, weights_from="table.npy")
    (tmp_path / "whole").mkdir()
    for folder in (tmp_path, tmp_path / "whole"):
        np.save(folder / "table.npy", np.ones((10, 10), np.float32))
    seen = make(spec, tmp_path / "whole")
    make(spec, tmp_path, len(seen) - 8)
    np.save(tmp_path / "table.npy", np.zeros((10, 10), np.float32))
    with refused("other numbers", "weights to start from have changed"):
        run_training(spec, tmp_path, Silent())
    np.save(tmp_path / "table.npy", np.ones((10, 10), np.float32))
    run_training(spec, tmp_path, Silent())
    assert_same(tmp_path / "run", tmp_path / "whole" / "run")


def test_by_default_a_short_run_writes_no_checkpoint(tmp_path: Path, trained: list[Any]) -> None:
    with killed_before(np.inf) as seen:
        run_training(ONLINE, tmp_path, Silent())
    assert seen.count("replace") == 3


PROGRAM = """
import sys
from pathlib import Path
import jax
import numpy as np
jax.config.update("jax_compilation_cache_dir", sys.argv[2])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
jax.config.update("jax_persistent_cache_enable_xla_caches", "none")
from paircredit.experiments import TrainingSpec, training_run
from paircredit.experiments.training_run import Silent
training_run.LARGEST_CHUNK = 5
real = training_run.train
def train(*arguments, **more):
    state = real(*arguments, **more)
    np.savez(sys.argv[1] + "-learner.npz", *jax.tree.leaves(jax.device_get(state.learner)))
    return state
training_run.train = train
spec = TrainingSpec("run", "dag", "meta-pwr", int(sys.argv[3]), (0, 1), {"depth": 4})
training_run.run_training(spec, Path(sys.argv[1]), Silent(), checkpoint_seconds=0.0)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("most", "updates"), [(2, 600), pytest.param(20, 2000, marks=pytest.mark.nightly)])
def test_kills_at_random_moments(tmp_path: Path, most: int, updates: int) -> None:
    """Real processes, really killed: while they start, train, or write."""

    def words(folder: str) -> list[str]:
        return [sys.executable, "-c", PROGRAM, str(tmp_path / folder), str(tmp_path / "compiled"), str(updates)]

    def size() -> int:
        return metrics.stat().st_size if metrics.exists() else 0

    subprocess.run(words("whole"), check=True)
    metrics, total = (
        tmp_path / "killed" / "run" / "metrics.jsonl",
        (tmp_path / "whole/run/metrics.jsonl").stat().st_size,
    )
    chance, kills, sizes = random.Random(7), 0, set()
    while kills < most:
        process, began, before = subprocess.Popen(words("killed")), time.monotonic(), size()
        early = kills % 5 == 0
        deadline = began + (chance.uniform(0, 2) if early else 60)
        target = total if early else before + chance.randrange(total // (most + 5))
        while process.poll() is None and time.monotonic() < deadline and not before <= target < size():
            time.sleep(0.001)
        time.sleep(chance.uniform(0, 0.02))
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL, "it ended before it was killed; make the run longer"
        kills += 1
        sizes.add(size())
    assert len(sizes) > most // 2, "the kills came at different places"
    subprocess.run(words("killed"), check=True)
    assert_same(tmp_path / "killed" / "run", tmp_path / "whole" / "run")
    assert len(read_run(tmp_path / "killed" / "run").manifest["resumptions"]) >= most // 2
    rows = read_run(tmp_path / "killed" / "run").metrics()
    assert [(row["update"], row["member"]) for row in rows] == [(u, m) for u in range(updates) for m in (0, 1)]
    with np.load(tmp_path / "whole-learner.npz") as one, np.load(tmp_path / "killed-learner.npz") as other:
        assert len(one.files) > 5
        for name in one.files:
            np.testing.assert_array_equal(one[name], other[name])


def test_a_run_that_has_lost_its_manifest_is_not_passed_over(tmp_path, run_cli):
    (tmp_path / "lost").mkdir()
    (tmp_path / "lost" / "metrics.jsonl").write_text("{}\n")
    code, _, error = run_cli("resume", tmp_path)
    assert code == 2 and "lost has a metrics.jsonl and no manifest.json" in error
