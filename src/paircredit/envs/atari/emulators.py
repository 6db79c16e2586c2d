"""Emulators of the Arcade Learning Environment, in threads of their own; run as a script, in a process of their own.

The process steps them for another one, whose Python they then need not wait for: it runs one thread at a time, and one
that hands programs to a device holds all others up. No JAX is imported here: the process is there at once.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import mmap
import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

if __name__ == "__main__":  # known by its path alone
    sys.path.append(str(Path(__file__).parents[3]))
from paircredit.scheduling import less_urgently, own_threads, share_cores

BEGIN, STEP, DONE = b"b", b"s", b"d"
"""What is asked of a process, and what it answers."""


Settings = Mapping[str, Any]
"""Those of an `AtariConfig`, by name, as one process tells them to another."""


def open_emulators(settings: Settings, count: int, beside_others: bool = False) -> Any:
    """This many of them, whose threads stand back when others want the cores, as those do that keep them supplied.

    They share the cores with other pools where some are `beside_others`. Nothing is left to the emulator's defaults:
    they differ between its versions and parts.
    """
    vector, gymnasium = importlib.import_module("ale_py.vector_env"), importlib.import_module("gymnasium")
    make = partial(
        vector.AtariVectorEnv,
        settings["game"],
        count,
        batch_size=0,
        num_threads=settings["threads"],
        thread_affinity_offset=-1,
        max_num_frames_per_episode=settings["most_frames"],
        repeat_action_probability=float(settings["sticky_action_probability"]),
        full_action_space=settings["all_actions"],
        continuous=False,
        autoreset_mode=gymnasium.vector.AutoresetMode.NEXT_STEP,
        img_height=settings["size"],
        img_width=settings["size"],
        grayscale=True,
        stack_num=1,
        frameskip=settings["frame_skip"],
        maxpool=settings["frame_skip"] > 1,
        noop_max=settings["most_noops"] + 1,  # the emulator draws from 0 up to one less
        episodic_life=False,  # ends at lost lives and clipped rewards are ours: scores are those of whole games
        life_loss_info=False,
        reward_clipping=False,
        use_fire_reset=settings["fire_at_start"],
    )

    def made() -> Any:
        others = own_threads()
        emulators = make()
        if beside_others:
            share_cores(sorted(own_threads() - others))
        return emulators

    return less_urgently(made, settings["niceness"])


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


def serve(settings: Settings, count: int, files: Sequence[int]) -> None:
    """Do what is asked until nobody can ask any more.

    The files are open: the shared memory; where questions come in and answers go out; the ends of `Turns`.
    """
    shared, asked, answers, free, passed_on = files
    given, frame, news = lay_out(mmap.mmap(shared, shared_bytes(count, settings["size"])), count, settings["size"])
    emulators = open_emulators(settings, count, beside_others=True)
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


if __name__ == "__main__":
    told = json.loads(sys.argv[1])
    with contextlib.suppress(BrokenPipeError):  # whoever asked is gone
        serve(told["settings"], told["count"], told["files"])
