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

    def begin(nicer):
        thread = threading.Thread(target=work, args=(nicer,))
        thread.start()
        return thread

    threads = [begin(nicer=False)]
    alike = cores_between(work_so_far(), work_so_far())
    threads.append(begin(nicer=True))
    before = work_so_far()
    threading.Event().wait(0.5)
    both = cores_between(before, work_so_far())
    done.set()
    threads[0].join()
    done.clear()
    threads += [begin(nicer=False), begin(nicer=True)]
    before = work_so_far()
    threading.Event().wait(0.5)
    done.set()
    threads[-2].join()
    done.clear()
    threads.append(begin(nicer=True))
    one_ended = cores_between(before, work_so_far())
    done.set()
    for thread in threads:
        thread.join()
    assert alike == {}  # nobody stands back
    others = sum(both.values()) - both["emulators"]
    assert both["emulators"] > 0.05 and others - both["ended"] > 0.05
    assert one_ended["ended"] > 0.05


def test_where_the_system_does_not_tell_nothing_is_said(monkeypatch, tmp_path):
    monkeypatch.setattr(cores, "_TASKS", tmp_path / "none")
    assert cores_between(work_so_far(), work_so_far()) == {}
