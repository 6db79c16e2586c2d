"""Environments that live on the host: emulators in threads of their own, stepped many at a time.

Such an environment is no pure function. It opens *pools*: copies that are all stepped together and start again by
themselves, in the step that follows an end. Training then drives pools and compiled programs side by side
(`training/hosted.py`); to methods a rollout looks as all others do.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any, NoReturn, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from paircredit.envs.protocol import Environment
from paircredit.errors import PaircreditError
from paircredit.types import PyTree, TimeStep


class Turns:
    """Lets a fixed number of pools step at a time; the others follow in the order in which they have asked.

    A pool alone cannot keep the cores busy: at the end of a step they wait for its last emulators. Pools that all step
    side by side are done at about the same time, and then all their groups want the device at once.

    A turn is a byte in a pipe, so that pools may be in processes of their own, which inherit its two `ends`, the
    numbers of open files: turns are taken from the first and given back to the second.
    """

    def __init__(self, at_a_time: int) -> None:
        self.ends = os.pipe()
        os.write(self.ends[1], bytes(at_a_time))

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        """Wait for a turn, and give it back on leaving, also after an error."""
        os.read(self.ends[0], 1)
        try:
            yield
        finally:
            self.pass_on()

    def pass_on(self) -> None:
        """Give a turn back for another pool, also on behalf of a pool that died while it had one."""
        os.write(self.ends[1], bytes(1))

    def close(self) -> None:
        """Close the pipe, once no pool is left."""
        for end in self.ends:
            os.close(end)


def pools_at_a_time(pools: int) -> int:
    """How many of the pools should step at a time: just over half keep the cores busy while the others wait."""
    return pools // 2 + 1


class Pool(Protocol):
    """N copies of an environment."""

    def reset(self) -> PyTree:
        """Begin an episode in each; what they show, arrays of the host with a leading axis N."""

    def send(self, actions: np.ndarray) -> None:
        """Begin a step in all; returns at once. A copy whose episode is over begins another one instead."""

    def receive(self) -> PyTree:
        """What the step led to, once it is done; as `reset`, and never in the memory of an earlier answer."""

    def close(self) -> None:
        """Let go of everything."""


class PoolInGraph(Pool, Protocol):
    """One that compiled programs can step."""

    @property
    def handle(self) -> Any:
        """An array that says to them which pool to step."""

    def in_graph(self, handle: Any, actions: Any) -> tuple[Any, PyTree]:
        """A step as a part of a compiled program, with the handle of any pool of this size; and the handle."""


@runtime_checkable
class HostedEnvironment(Environment, Protocol):
    """What opens pools. The answers of a pool are `raw`: whatever arrays it likes, which `read` understands."""

    @property
    def in_graph(self) -> bool:
        """Whether rollouts are to be compiled programs that step a `PoolInGraph`, and not steps that Python drives."""

    def groups(self, members: int) -> int:
        """In how many groups of members to train, which do not wait for each other; at most as many as members.

        One program is compiled for each of their sizes, which differ by one at most.
        """

    def open(self, seeds: np.ndarray, turns: Turns | None = None) -> Pool:
        """A pool of a copy for every seed (whole numbers below 2³¹), which without turns steps whenever it is asked."""

    def raw(self) -> PyTree:
        """Shapes and types of what one copy answers."""

    def read(self, state: PyTree, raw: PyTree) -> tuple[PyTree, TimeStep]:
        """One copy's answer as a time step, and what is to be kept of it for the next one; a pure function.

        The state before the first answer, which is the start of an episode, is None.
        """


class Hosted(eqx.Module):
    """Environments on the host have the functions of all others, for their shapes alone; who calls them is refused."""

    def reset(self: HostedEnvironment, key: Array) -> tuple[PyTree, TimeStep]:
        return self.read(None, _nobody_there(self, jnp.zeros((), dtype=jnp.int32)))

    def step(self: HostedEnvironment, key: Array, state: PyTree, action: Int[Array, ""]) -> tuple[PyTree, TimeStep]:
        return self.read(state, _nobody_there(self, action))


def _nobody_there(env: HostedEnvironment, given: Array) -> PyTree:
    return jax.pure_callback(_refuse, env.raw(), given, vmap_method="broadcast_all")


def _refuse(given: Array) -> NoReturn:
    raise PaircreditError("An environment on the host is stepped in pools by `train`, and by nothing else.")
