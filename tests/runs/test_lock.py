"""A run folder has one writer, and a dead writer lets go of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from paircredit.runs import RunWriter
from paircredit.runs.files import FolderLock
from tests.sentences import refused

HOLDER = """
import sys
from pathlib import Path
from paircredit.runs.files import FolderLock
lock = FolderLock(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path: Path):
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_another_process_is_kept_out_and_told_who_is_in(tmp_path: Path, holder) -> None:
    with refused(str(tmp_path), f"number {holder.pid}", "wait until it ends"):
        FolderLock(tmp_path)


def test_a_lock_dies_with_its_process(tmp_path: Path, holder) -> None:
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert (tmp_path / "lock").exists(), "the file stays, but nobody holds it"
    FolderLock(tmp_path).release()


def test_released_means_gone(tmp_path: Path) -> None:
    for _ in range(2):
        lock = FolderLock(tmp_path)
        with refused(f"number {os.getpid()}"):
            FolderLock(tmp_path)
        lock.release()
        lock.release()
        assert list(tmp_path.iterdir()) == []


def test_a_lock_file_that_was_removed_while_we_waited_is_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opened before its holder removed it, locked afterwards: then another file is the lock."""
    import fcntl

    real, removed = fcntl.flock, []

    def flock(descriptor: int, how: int) -> None:
        if not removed:
            (tmp_path / "lock").unlink()
            removed.append(True)
        real(descriptor, how)

    monkeypatch.setattr("paircredit.runs.files.fcntl.flock", flock)
    lock = FolderLock(tmp_path)
    with refused("another process"):
        FolderLock(tmp_path)
    lock.release()


def test_a_run_that_is_being_written_is_left_alone(tmp_path: Path) -> None:
    first = RunWriter(tmp_path / "run", "training", {"name": "run"})
    first.append([{"x": 1}])
    with refused("another process"):
        RunWriter(tmp_path / "run", "training", {"name": "run"}, go_on=True)
    first.append([{"x": 2}])
    first.finish()
    assert (tmp_path / "run" / "metrics.jsonl").read_text() == '{"x": 1}\n{"x": 2}\n'
