"""Emulators of the Arcade Learning Environment, in threads of their own."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from paircredit.errors import PaircreditError

ONLY_WHEN_IDLE = 20
"""A niceness beyond those that Linux has: its scheduling class for what runs only where nothing else wants the core."""


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


class Raw(NamedTuple):
    """What emulators say; arrays of the host or of a device.

    Attributes:
        frame: the newest, [1, H, W] bytes; earlier ones are kept where they are needed, and not sent again.
        reward: as the game counts.
        terminated: the game is over.
        truncated: it took too long.
        lives: that are left; 0 in games without.
    """

    frame: Any
    reward: Any
    terminated: Any
    truncated: Any
    lives: Any


class AtariPool:
    """So many emulators of one game, which start again by themselves in the step behind an end."""

    def __init__(self, options: Options, seeds: np.ndarray) -> None:
        """One emulator for every seed."""
        vector, gymnasium = require_emulator(options.game), importlib.import_module("gymnasium")
        self._seeds = np.asarray(seeds, dtype=np.int64)
        make = partial(
            vector.AtariVectorEnv,
            options.game,
            len(seeds),
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
        self._emulators = _less_urgently(make, options.niceness)
        self._handle: Any = None
        self._step: Any = None

    def reset(self) -> Raw:
        """Begin a game in each."""
        frame, info = self._emulators.reset(seed=self._seeds)
        nothing = np.zeros(len(self._seeds), dtype=bool)
        return Raw(frame, nothing.astype(np.int32), nothing, nothing, info["lives"])

    def send(self, actions: np.ndarray) -> None:
        """Begin a step in all."""
        self._emulators.send(np.asarray(actions, dtype=np.int32))

    def receive(self) -> Raw:
        """Wait until the step is done."""
        frame, reward, terminated, truncated, info = self._emulators.recv()
        return Raw(frame, reward, terminated, truncated, info["lives"])

    @property
    def handle(self) -> Any:
        """For programs that step this pool."""
        if self._handle is None:
            self._handle, _, self._step = self._emulators.xla()
        return self._handle

    def in_graph(self, handle: Any, actions: Any) -> tuple[Any, Raw]:
        """A step as a part of a compiled program, of whichever pool of this size the handle belongs to."""
        handle, (frame, reward, terminated, truncated, info) = self._step(handle, actions)
        return handle, Raw(frame, reward, terminated, truncated, info["lives"])

    def close(self) -> None:
        """Let go of the emulators and their threads."""
        self._emulators = self._step = self._handle = None


def _less_urgently(make: Callable[[], Any], niceness: int) -> Any:
    """Make something whose threads stand back when others want the cores, as those do that keep them supplied.

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


def require_emulator(game: str) -> Any:
    """The module with the emulators; where it is not installed, a sentence says how to get it."""
    try:
        importlib.import_module("chex")
        return importlib.import_module("ale_py.vector_env")
    except ModuleNotFoundError as error:
        raise PaircreditError(
            f"atari/{game} needs the Arcade Learning Environment, which is under the GPL 2; install it with "
            "`pip install 'paircredit[atari]'`."
        ) from error


def count_actions(game: str, all_actions: bool) -> int:
    """How many actions a game knows.

    Raises:
        PaircreditError: there is no such game.
    """
    require_emulator(game)
    ale_py = importlib.import_module("ale_py")
    roms = importlib.import_module("ale_py.roms")
    path = roms.get_rom_path(game) if game in roms.get_all_rom_ids() else None
    if path is None:
        raise PaircreditError(f"The emulator has no game called {game!r}; names look like ms_pacman.")
    with contextlib.suppress(AttributeError):
        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    emulator = ale_py.ALEInterface()
    emulator.loadROM(path)
    return len(emulator.getLegalActionSet() if all_actions else emulator.getMinimalActionSet())
