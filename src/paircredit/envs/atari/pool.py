"""Pools of emulators: in this process, or in one of their own."""

from __future__ import annotations

import contextlib
import importlib
import json
import mmap
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from paircredit.envs.atari import emulators
from paircredit.envs.atari.emulators import Settings
from paircredit.envs.hosted import Turns
from paircredit.errors import PaircreditError

PATIENCE = 10.0
"""Seconds for a process to end by itself."""


class Raw(NamedTuple):
    """What emulators say; arrays of the host or of a device, and few of them: each is sent there by itself.

    `frame` is the newest, [1, H, W] bytes; earlier ones are kept where they are needed, and not sent again. `news` are
    four whole numbers: the reward as the game counts, terminated, truncated, and lives, 0 in games without.
    """

    frame: Any
    news: Any

    @property
    def reward(self) -> Any:
        return self.news[..., 0]

    @property
    def terminated(self) -> Any:
        return self.news[..., 1] > 0

    @property
    def truncated(self) -> Any:
        return self.news[..., 2] > 0

    @property
    def lives(self) -> Any:
        return self.news[..., 3]


class AtariPool:
    """This many emulators of one game, which start again by themselves in the step after an end."""

    def __init__(self, settings: Settings, seeds: np.ndarray) -> None:
        require_emulator(settings["game"])
        self._seeds = np.asarray(seeds, dtype=np.int64)
        self._emulators = emulators.open_emulators(settings, len(seeds))
        self._handle: Any = None
        self._step: Any = None

    def reset(self) -> Raw:
        return Raw(*emulators.said_at_start(*self._emulators.reset(seed=self._seeds)))

    def send(self, actions: np.ndarray) -> None:
        self._emulators.send(np.asarray(actions, dtype=np.int32))

    def receive(self) -> Raw:
        return Raw(*emulators.said(*self._emulators.recv()))

    @property
    def handle(self) -> Any:
        """For programs that step this pool."""
        if self._handle is None:
            self._handle, _, self._step = self._emulators.xla()
        return self._handle

    def in_graph(self, handle: Any, actions: Any) -> tuple[Any, Raw]:
        """A step as a part of a compiled program, of whichever pool of this size the handle belongs to."""
        handle, (frame, reward, terminated, truncated, info) = self._step(handle, actions)
        news = [said.astype(jnp.int32) for said in (reward, terminated, truncated, info["lives"])]
        return handle, Raw(frame, jnp.stack(news, axis=-1))

    def close(self) -> None:
        self._emulators = self._step = self._handle = None


class AtariProcess:
    """The same in a process of its own, which takes turns with others; for steps that Python drives."""

    def __init__(self, settings: Settings, seeds: np.ndarray, turns: Turns) -> None:
        """Returns at once: processes that are started one after another open their emulators side by side."""
        require_emulator(settings["game"])
        count, self._game, self._turns = len(seeds), settings["game"], turns
        self._seeds = np.asarray(seeds, dtype=np.int64)
        shared = _nameless_file()
        os.ftruncate(shared, size := emulators.shared_bytes(count, settings["size"]))
        self._given, self._frame, self._news = emulators.lay_out(mmap.mmap(shared, size), count, settings["size"])
        asked, self._questions = os.pipe()
        self._answers, answers = os.pipe()
        files = [shared, asked, answers, *turns.ends]
        told = {"settings": settings, "count": count, "files": files}
        # Python's path without the folder of the script, whose files have names of their own.
        command = [sys.executable, "-P", str(Path(emulators.__file__)), json.dumps(told)]
        # In a session of its own, so that Ctrl-C is for this process alone, which then closes that one.
        self.process = subprocess.Popen(command, pass_fds=files, start_new_session=True, stdin=subprocess.DEVNULL)
        for end in (shared, asked, answers):
            os.close(end)

    def reset(self) -> Raw:
        self._ask(emulators.BEGIN, self._seeds)
        return self.receive()

    def send(self, actions: np.ndarray) -> None:
        """Begin a step in all, as soon as it is their turn."""
        self._ask(emulators.STEP, actions)

    def receive(self) -> Raw:
        if os.read(self._answers, 1) != emulators.DONE:
            raise self._gone()
        return Raw(self._frame.copy(), self._news.copy())

    def close(self) -> None:
        for end in (self._questions, self._answers):
            os.close(end)
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _ask(self, question: bytes, given: np.ndarray) -> None:
        self._given[:] = given
        try:
            os.write(self._questions, question)
        except BrokenPipeError as error:
            raise self._gone() from error

    def _gone(self) -> PaircreditError:
        """What to say when the process is gone; its turn, if it had one, is passed on, so that all others can stop."""
        self._turns.pass_on()
        code = self.process.wait()
        return PaircreditError(
            f"The process with the emulators of atari/{self._game} has ended (exit code {code}); it may have needed "
            "too much memory. `paircredit resume` goes on from a run's last checkpoint."
        )


def _nameless_file() -> int:
    """An open file that is gone when nobody has it open any more; in memory where the system can do that."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("emulators")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def require_emulator(game: str) -> None:
    """Make sure that the emulator is installed; where it is not, a sentence says how to get it."""
    try:
        importlib.import_module("chex")
        importlib.import_module("ale_py.vector_env")
    except ModuleNotFoundError as error:
        raise PaircreditError(
            f"atari/{game} needs the Arcade Learning Environment, which is under the GPL 2; install it with "
            "`pip install 'paircredit[atari]'`."
        ) from error


def count_actions(game: str, all_actions: bool) -> int:
    """How many actions a game knows; refuses one that the emulator does not know."""
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
