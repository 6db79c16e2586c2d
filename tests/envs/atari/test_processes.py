"""Emulators in processes of their own."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pathlib
import platform
import select
import struct
import subprocess
import sys
import time

import numpy as np
import pytest

from paircredit.envs import make_environment
from paircredit.envs.atari.pool import AtariPool, AtariProcess
from paircredit.envs.hosted import Turns
from paircredit.errors import PaircreditError
from paircredit.scheduling import LONGEST_SLICE, ONLY_WHEN_IDLE


def steps_of(pool, actions):
    """All that a pool says, one action after another in all its games."""
    for action in actions:
        pool.send(action)
        yield pool.receive()


@pytest.fixture
def pools_in_processes():
    """Two pools of three emulators, of which one steps at a time, and their turns."""
    turns, env = Turns(1), make_environment("atari/breakout", rollouts="host")
    pools = [env.open(seeds, turns) for seeds in np.arange(6).reshape(2, 3)]
    yield pools
    for pool in pools:
        pool.close()
    turns.close()


def test_emulators_of_a_process_are_those_of_this_one(pools_in_processes):
    here = make_environment("atari/breakout", rollouts="host").open(np.arange(3, 6))
    there = pools_in_processes[1]
    assert isinstance(there, AtariProcess) and isinstance(here, AtariPool)
    actions = np.random.default_rng(0).integers(4, size=(200, 3))
    pairs = [(here.reset(), there.reset()), *zip(steps_of(here, actions), steps_of(there, actions), strict=True)]
    for ours, theirs in pairs:
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(one, other)
            assert one.dtype == other.dtype
    first, last = pairs[0][1].frame, pairs[-1][1].frame
    assert not np.shares_memory(first, last) and (first != last).any()
    here.close()


def test_pools_take_turns(pools_in_processes):
    """While nobody passes a turn on, no pool steps."""
    one, other = pools_in_processes
    for pool in pools_in_processes:
        pool.reset()
    with one._turns.taken():
        for pool in pools_in_processes:
            pool.send(np.zeros(3, dtype=np.int32))
        assert select.select([one._answers, other._answers], [], [], 0.3)[0] == []
    assert one.receive().frame.shape == other.receive().frame.shape == (3, 1, 84, 84)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets threads be placed and kept on cores")
@pytest.mark.parametrize("niceness", [0, 10, ONLY_WHEN_IDLE])
def test_every_core_has_one_thread_of_a_pool_which_stays_there(niceness):
    cores, turns = os.sched_getaffinity(0), Turns(1)
    env = make_environment("atari/pong", rollouts="host", niceness=niceness)
    with contextlib.closing(turns), contextlib.closing(env.open(np.arange(len(cores)), turns)) as pool:
        pool.reset()
        of_process = [int(task.name) for task in pathlib.Path(f"/proc/{pool.process.pid}/task").iterdir()]
        kept = [thread for thread in of_process if os.sched_getscheduler(thread) in (os.SCHED_BATCH, os.SCHED_IDLE)]
        assert sorted(core for thread in kept for core in os.sched_getaffinity(thread)) == sorted(cores)
        assert len(kept) == len(cores)
        for thread in kept:
            assert os.getpriority(os.PRIO_PROCESS, thread) == (0 if niceness == ONLY_WHEN_IDLE else niceness)
            assert (os.sched_getscheduler(thread) == os.SCHED_IDLE) == (niceness == ONLY_WHEN_IDLE)
            if slice_of(os.getpid()):  # else the system does not tell, and does as it likes
                assert slice_of(thread) == LONGEST_SLICE > slice_of(os.getpid())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets threads be placed and kept on cores")
def test_fewer_threads_than_cores_are_placed_by_the_system():
    cores, turns = os.sched_getaffinity(0), Turns(1)
    env = make_environment("atari/pong", rollouts="host", threads=1)
    with contextlib.closing(turns), contextlib.closing(env.open(np.arange(4), turns)) as pool:
        pool.reset()
        of_process = [int(task.name) for task in pathlib.Path(f"/proc/{pool.process.pid}/task").iterdir()]
        (kept,) = [thread for thread in of_process if os.sched_getscheduler(thread) == os.SCHED_BATCH]
        assert os.sched_getaffinity(kept) == cores


def slice_of(thread: int) -> int:
    """For how many nanoseconds Linux leaves a thread on its core, where it tells."""
    attributes = bytearray(48)
    number = {"x86_64": 315, "aarch64": 275}[platform.machine()]
    told = (ctypes.c_char * 48).from_buffer(attributes)
    assert ctypes.CDLL(None).syscall(number, thread, told, 48, 0) == 0
    return int(struct.unpack("=IIQiIQQQ", attributes)[5])


def test_a_process_that_is_gone_is_told_in_a_sentence_and_passes_its_turn_on(pools_in_processes):
    one, other = pools_in_processes
    for pool in pools_in_processes:
        pool.reset()
    os.read(one._turns.ends[0], 1)  # as the process does that is going to die
    other.send(np.zeros(3, dtype=np.int32))
    one.process.kill()
    with pytest.raises(PaircreditError, match=r"emulators of atari/breakout has ended \(exit code -9\)"):
        one.receive()
    assert other.receive().frame.shape == (3, 1, 84, 84)
    with pytest.raises(PaircreditError, match="has ended"):
        one.send(np.zeros(3, dtype=np.int32))


def test_processes_end_with_the_pool_and_with_whoever_started_them():
    turns = Turns(1)
    pool = make_environment("atari/pong", rollouts="host").open(np.arange(2), turns)
    pool.reset()
    pool.close()
    assert pool.process.returncode == 0
    turns.close()
    script = (
        "import numpy as np\nfrom paircredit.envs import make_environment\nfrom paircredit.envs.hosted import Turns\n"
        "pool = make_environment('atari/pong', rollouts='host').open(np.arange(2), Turns(1))\npool.reset()\n"
        "print(pool.process.pid, flush=True)\ninput()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        started = int(other.stdout.readline())
        os.kill(started, 0)  # it is there
        other.kill()
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and is_running(started):
        time.sleep(0.05)
    assert not is_running(started)


def is_running(process: int) -> bool:
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
