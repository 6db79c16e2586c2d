import hashlib
import os
import sys
import threading

import pytest

from paircredit.bench import cores
from paircredit.bench.cores import cores_between, work_so_far


def test_threads_that_stand_back_are_told_from_all_others():
    if sys.platform != "linux":
        pytest.skip("only Linux tells")
    done = threading.Event()

    def work(nicer):
        if nicer:
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), os.getpriority(os.PRIO_PROCESS, 0) + 3)
        block = bytes(1_000_000)
        while not done.is_set():
            hashlib.sha256(block).digest()  # which lets other threads run meanwhile

    def busy(nicer):
        done.clear()
        thread = threading.Thread(target=work, args=(nicer,))
        thread.start()
        before = work_so_far()
        threading.Event().wait(0.5)
        after = work_so_far()
        done.set()
        thread.join()
        return cores_between(before, after)

    alike = busy(nicer=False)
    behind = busy(nicer=True)
    assert sum(alike.values()) > 0.1 and alike.get("emulators", 0.0) == 0
    assert 0.1 < behind["emulators"] < 1.2 and next(iter(behind)) == "emulators"


def test_where_the_system_does_not_tell_nothing_is_said(monkeypatch, tmp_path):
    monkeypatch.setattr(cores, "_TASKS", tmp_path / "none")
    assert cores_between(work_so_far(), work_so_far()) == {}
