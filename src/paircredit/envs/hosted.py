"""Environments that live on the host: emulators in threads of their own, stepped many at a time.

Such an environment is no pure function. It opens *pools*: copies that are all stepped together and start again
by themselves, in the step that follows an end. Training then drives pools and compiled programs side by side
(`training/hosted/`); to methods a rollout looks as all others do.
"""

from __future__ import annotations

from typing import Any, NoReturn, Protocol, TypeGuard, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from paircredit.envs.protocol import Environment
from paircredit.envs.turns import Turns
from paircredit.errors import PaircreditError
from paircredit.types import PyTree, TimeStep


class Pool(Protocol):
    """N copies of an environment."""

    def reset(self) -> PyTree:
        """Begin an episode in each; what they show, arrays of the host with a leading axis N."""
        ...

    def send(self, actions: np.ndarray) -> None:
        """Begin a step in all; returns at once. A copy whose episode is over begins another one instead."""
        ...

    def receive(self) -> PyTree:
        """What the step led to, once it is done; as `reset`, and never in the memory of an earlier answer."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


class PoolInGraph(Pool, Protocol):
    """One that compiled programs can step."""

    @property
    def handle(self) -> Any:
        """An array that says to them which pool to step."""
        ...

    def in_graph(self, handle: Any, actions: Any) -> tuple[Any, PyTree]:
        """A step as a part of a compiled program, with the handle of any pool of this size; and the handle."""
        ...


@runtime_checkable
class HostedEnvironment(Environment, Protocol):
    """What opens pools. The answers of a pool are `raw`: whatever arrays it likes, which `read` understands."""

    @property
    def in_graph(self) -> bool:
        """Whether rollouts are to be compiled programs that step a `PoolInGraph`, and not steps that Python drives."""
        ...

    def groups(self, members: int) -> int:
        """In how many groups of members to train, which do not wait for each other; at most as many as members.

        Their sizes differ by one at most. Programs are compiled once for each size.
        """
        ...

    def open(self, seeds: np.ndarray, turns: Turns | None = None) -> Pool:
        """A pool of as many copies as there are seeds (whole numbers below 2³¹).

        Where there are several, they are given turns: one that takes none steps whenever it is asked.
        """
        ...

    def raw(self) -> PyTree:
        """Shapes and types of what one copy answers."""
        ...

    def read(self, state: PyTree, raw: PyTree) -> tuple[PyTree, TimeStep]:
        """One copy's answer as a time step; `state` is whatever is to be kept from one answer to the next.

        A pure function. The state before the first answer is None, and that answer is the start of an episode.
        """
        ...


def is_hosted(env: Any) -> TypeGuard[HostedEnvironment]:
    """Whether an environment lives on the host."""
    return isinstance(env, HostedEnvironment)


class Hosted(eqx.Module):
    """What environments on the host share: they have the functions of all others, but only for their shapes.

    Programs that look at shapes alone then need to know nothing; whoever really calls them gets a sentence.
    """

    def reset(self: HostedEnvironment, key: Array) -> tuple[PyTree, TimeStep]:
        """The shapes of a first time step."""
        del key
        return self.read(None, _nobody_there(self, jnp.zeros((), dtype=jnp.int32)))

    def step(self: HostedEnvironment, key: Array, state: PyTree, action: Int[Array, ""]) -> tuple[PyTree, TimeStep]:
        """The shapes of a time step."""
        del key
        return self.read(state, _nobody_there(self, action))


def _nobody_there(env: HostedEnvironment, given: Array) -> PyTree:
    return jax.pure_callback(_refuse, env.raw(), given, vmap_method="broadcast_all")


def _refuse(given: Array) -> NoReturn:
    del given
    raise PaircreditError("An environment on the host is stepped in pools by `train`, and by nothing else.")
