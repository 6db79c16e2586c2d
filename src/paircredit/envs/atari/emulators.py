"""Emulators of the Arcade Learning Environment, in threads of their own; run as a script, in a process of their own.

The process steps them for another one. Whatever that one does, emulators do not wait for it: Python runs one thread at
a time, and one that hands programs to a device holds all others up, those that have emulators to start among them.

Nothing of this package is imported here, and no JAX: the process is there at once.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import importlib
import json
import mmap
import os
import platform
import struct
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

ONLY_WHEN_IDLE = 20
"""A niceness beyond those that Linux has: its scheduling class for what runs only where nothing else wants the core."""
BEGIN, STEP, DONE = b"b", b"s", b"d"
"""What is asked of a process, and what it answers."""
LONGEST_SLICE = 100_000_000
"""Nanoseconds for which Linux may be asked to leave a thread on its core; before 6.12 it pays no attention."""
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274, "riscv64": 274}
"""By machine, the number of the call to Linux that says for how long; Python has no name for it."""


@dataclasses.dataclass(frozen=True)
class Options:
    """All that the emulator is told; nothing is left to its defaults, which differ between its versions and parts."""

    game: str
    sticky_action_probability: float
    most_noops: int
    frame_skip: int
    size: int
    fire_at_start: bool
    most_frames: int
    all_actions: bool
    threads: int
    niceness: int


def open_emulators(options: Options, count: int, beside_others: bool = False) -> Any:
    """So many of them, whose threads stand back when others want the cores, as those do that keep them supplied.

    Args:
        options: of the emulators.
        count: of them.
        beside_others: other pools share the cores with this one.
    """
    vector, gymnasium = importlib.import_module("ale_py.vector_env"), importlib.import_module("gymnasium")
    make = partial(
        vector.AtariVectorEnv,
        options.game,
        count,
        batch_size=0,
        num_threads=options.threads,
        thread_affinity_offset=-1,
        max_num_frames_per_episode=options.most_frames,
        repeat_action_probability=options.sticky_action_probability,
        full_action_space=options.all_actions,
        continuous=False,
        autoreset_mode=gymnasium.vector.AutoresetMode.NEXT_STEP,
        img_height=options.size,
        img_width=options.size,
        grayscale=True,
        stack_num=1,
        frameskip=options.frame_skip,
        maxpool=options.frame_skip > 1,
        noop_max=options.most_noops + 1,  # the emulator draws from 0 up to one less
        episodic_life=False,  # ends at lost lives and clipped rewards are ours: scores are those of whole games
        life_loss_info=False,
        reward_clipping=False,
        use_fire_reset=options.fire_at_start,
    )

    def made() -> Any:
        others = _own_threads()
        emulators = make()
        if beside_others:
            share_cores(sorted(_own_threads() - others))
        return emulators

    return _less_urgently(made, options.niceness)


def said_at_start(frame: np.ndarray, info: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """What emulators answer to a reset, as `said`."""
    nothing = np.zeros_like(info["lives"])
    return said(frame, nothing, nothing, nothing, info)


def said(
    frame: np.ndarray, reward: np.ndarray, terminated: np.ndarray, truncated: np.ndarray, info: dict[str, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """What they answer to a step: frames, and of each emulator reward, terminated, truncated and lives."""
    return frame, np.stack([reward, terminated, truncated, info["lives"]], axis=-1)


def lay_out(memory: mmap.mmap, count: int, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What two processes share: whole numbers for the emulators (seeds or actions), and their two answers."""
    given = np.frombuffer(memory, np.int64, count)
    news = np.frombuffer(memory, np.int32, 4 * count, offset=given.nbytes)
    frame = np.frombuffer(memory, np.uint8, count * size * size, offset=given.nbytes + news.nbytes)
    return given, frame.reshape(count, 1, size, size), news.reshape(count, 4)


def shared_bytes(count: int, size: int) -> int:
    """How much memory that is."""
    return count * (8 + 4 * 4 + size * size)


def serve(options: Options, count: int, files: Sequence[int]) -> None:
    """Do what is asked until nobody can ask any more.

    Args:
        options: of the emulators.
        count: of them.
        files: numbers of open ones: the shared memory; where questions come in and answers go out; the ends of `Turns`.
    """
    shared, asked, answers, free, passed_on = files
    given, frame, news = lay_out(mmap.mmap(shared, shared_bytes(count, options.size)), count, options.size)
    emulators = open_emulators(options, count, beside_others=True)
    while question := os.read(asked, 1):
        if question == BEGIN:
            answer = said_at_start(*emulators.reset(seed=given.copy()))
        else:
            actions = given.astype(np.int32)
            os.read(free, 1)
            try:
                emulators.send(actions)
                received = emulators.recv()
            finally:
                os.write(passed_on, bytes(1))  # before anything else: others wait for it
            answer = said(*received)
        frame[...], news[...] = answer
        os.write(answers, DONE)


def share_cores(threads: Sequence[int]) -> None:
    """Threads of a pool share the cores with those of other pools so that none is stopped in the midst of a step.

    Left to itself Linux lets the threads of all pools take turns on a core every few milliseconds. A pool waits for all
    its emulators, so one that is stopped in a step holds up the others; and pools that advance side by side are done at
    the same time, and then leave the cores to nobody. A thread that stays on its core while there are emulators to step
    makes way for the next pool as soon as there are none. And where each core has one thread of every pool, no
    core is idle while two threads wait for another.

    Nothing is done where the system is not Linux.

    Args:
        threads: of the pool, by number; if there is one for every core, each is kept on its own.
    """
    if sys.platform != "linux":
        return
    number, cores = _SCHED_SETATTR.get(platform.machine()), sorted(os.sched_getaffinity(0))
    for index, thread in enumerate(threads):
        if len(threads) == len(cores):
            os.sched_setaffinity(thread, {cores[index]})
        if number is not None:
            policy, niceness = os.sched_getscheduler(thread), os.getpriority(os.PRIO_PROCESS, thread)
            said = struct.pack("=IIQiIQQQ", 48, os.SCHED_BATCH, 0, niceness, 0, LONGEST_SLICE, 0, 0)
            ctypes.CDLL(None).syscall(number, thread, said, 0)  # a wish: where it is refused, all goes on as it was
            if policy == os.SCHED_IDLE:
                os.sched_setscheduler(thread, policy, os.sched_param(0))


def _own_threads() -> set[int]:
    """Those of this process, as Linux numbers them."""
    return {int(name) for name in os.listdir("/proc/self/task")} if sys.platform == "linux" else set()


def _less_urgently(make: Callable[[], Any], niceness: int) -> Any:
    """Make something whose threads stand back.

    Threads inherit this from the thread that makes them, on Linux; elsewhere it is the whole program's, and left alone.
    """

    def work() -> Any:
        if sys.platform == "linux" and niceness:
            with contextlib.suppress(OSError):  # it stands back further already
                own = threading.get_native_id()
                if niceness == ONLY_WHEN_IDLE:
                    os.sched_setscheduler(own, os.SCHED_IDLE, os.sched_param(0))
                else:
                    os.setpriority(os.PRIO_PROCESS, own, max(niceness, os.getpriority(os.PRIO_PROCESS, own)))
        return make()

    with ThreadPoolExecutor(1) as executor:
        return executor.submit(work).result()


if __name__ == "__main__":
    told = json.loads(sys.argv[1])
    with contextlib.suppress(BrokenPipeError):  # whoever asked is gone
        serve(Options(**told["options"]), told["count"], told["files"])
