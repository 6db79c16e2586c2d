import os
import sys
import threading
import time

import pytest
from tools.bench import cores
from tools.bench.cores import Work, cores_between, work_so_far


def test_threads_are_counted_by_what_they_are():
    before = Work(10.0, 100.0, {1, 2}, {1: 5.0, 2: 7.0}, {1: "python", 2: "emulators"})
    after = Work(12.0, 108.0, {1, 2, 3}, {1: 6.0, 2: 10.0, 3: 2.0}, {1: "python", 2: "emulators", 3: "emulators"})
    assert cores_between(before, after) == {"emulators": 2.5, "ended": 1.0, "python": 0.5}  # the busiest first


def test_threads_of_other_processes_do_not_count_as_time_of_this_one():
    before = Work(10.0, 100.0, {1}, {1: 5.0, 2: 7.0}, {1: "python", 2: "emulators"})
    after = Work(12.0, 102.0, {1}, {1: 6.0, 2: 10.0}, {1: "python", 2: "emulators"})
    assert cores_between(before, after) == {"emulators": 1.5, "ended": 0.5, "python": 0.5}


def test_nothing_is_said_where_nobody_stands_back():
    work = Work(10.0, 100.0, {1}, {1: 5.0}, {1: "python"})
    assert cores_between(work, Work(11.0, 101.0, {1}, {1: 6.0}, {1: "python"})) == {}


def test_threads_that_stand_back_and_threads_that_have_ended():
    """Each thread works until it has had a core for a while, however long that takes."""
    if sys.platform != "linux":  # which alone tells
        assert work_so_far().seconds == {}
        return
    seconds, stay = 0.3, threading.Event()

    def begin(nicer=False, stays=True):
        worked = threading.Event()

        def work():
            if nicer:
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), os.getpriority(os.PRIO_PROCESS, 0) + 3)
            while time.thread_time() < seconds:
                pass
            worked.set()
            if stays:
                stay.wait()

        thread = threading.Thread(target=work)
        thread.start()
        return thread, worked, cores._PROCESSES / "self" / "task" / str(thread.native_id)

    before = work_so_far()
    threads = [begin(), begin(nicer=True), begin(stays=False)]
    for _, worked, _ in threads:
        worked.wait()
    while threads[-1][2].exists():  # when Python has joined a thread, the system may still have it
        time.sleep(0.001)
    after = work_so_far()
    stay.set()
    for thread, *_ in threads:
        thread.join()
    passed, found = after.at - before.at, cores_between(before, after)
    assert found["emulators"] * passed == pytest.approx(seconds, abs=0.05)
    assert found["ended"] * passed > seconds - 0.05
    assert sum(found.values()) * passed == pytest.approx(after.all - before.all, abs=0.1)
    assert sum(found.values()) * passed > 3 * seconds - 0.1


def test_where_the_system_does_not_tell_nothing_is_said(monkeypatch, tmp_path):
    monkeypatch.setattr(cores, "_PROCESSES", tmp_path / "none")
    assert cores_between(work_so_far(), work_so_far()) == {}
