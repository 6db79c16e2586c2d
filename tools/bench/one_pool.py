"""All environments of a training in one pool, alone in a process of its own: what a vector of them does by itself.

Opening hundreds of emulators takes a minute, in which Python can do nothing else; here nobody waits for it.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from paircredit.envs.hosted import Pool
from paircredit.envs.registry import make_environment
from paircredit.errors import PaircreditError


class OnePool:
    """A process with a pool that plays at random when it is asked to.

    Attributes:
        process: with the pool.
    """

    def __init__(self, env: str, settings: Mapping[str, Any], actors: int) -> None:
        """Returns at once.

        Args:
            env: name of the environment.
            settings: of it.
            actors: copies of it.
        """
        told = json.dumps({"env": env, "settings": dict(settings), "actors": actors})
        self._env = env
        self.process = subprocess.Popen(
            [sys.executable, "-c", "from tools.bench.one_pool import serve; serve()", told],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],  # where `tools` is found
            env=os.environ | {"JAX_PLATFORMS": "cpu"},  # it computes nothing, and must not take a GPU's memory
            start_new_session=True,  # Ctrl-C is for this process alone, which then closes that one
        )

    def play(self, steps: int) -> None:
        """This many steps of all copies with random actions, as fast as it goes; with 0, wait until they are there."""
        assert self.process.stdin is not None and self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # then there is no answer, either
            print(steps, file=self.process.stdin, flush=True)
        if not self.process.stdout.readline():
            raise PaircreditError(
                f"The process with all of {self._env} in one pool has ended (exit code {self.process.wait()}); it may "
                "have needed too much memory: time fewer --members."
            )

    def close(self) -> None:
        """End the process, whatever it does."""
        self.process.kill()
        self.process.wait()
        for end in (self.process.stdin, self.process.stdout):
            assert end is not None
            end.close()


def play(pool: Pool, actors: int, num_actions: int, steps: int, seed: int = 0) -> None:
    """Random actions, as fast as it goes."""
    actions = np.random.default_rng(seed).integers(num_actions, size=(steps, actors), dtype=np.int32)
    for chosen in actions:
        pool.send(chosen)
        pool.receive()


def serve() -> None:
    """What the process does: read numbers of steps, play them, and say so."""
    told = json.loads(sys.argv[1])
    env: Any = make_environment(told["env"], **told["settings"])
    pool = env.open(np.arange(told["actors"]))
    pool.reset()
    for steps in sys.stdin:
        play(pool, told["actors"], env.spec.num_actions, int(steps))
        print("played", flush=True)
