"""Any `dm_env` environment, on the host: slow, for tasks that nobody has written for the device.

A rollout is a compiled program; at every step it calls back to Python, where the environment lives. All episodes of all
members are stepped in one call. Nothing needs the package `dm_env` itself: what has its methods will do.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import math
import threading
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, Int32, Key, UInt32

from paircredit.envs.protocol import EnvSpec, Vector
from paircredit.errors import PaircreditError
from paircredit.types import TimeStep

ROUNDS = 4
"""An episode that is needed is stepped before others have been begun twice; this many times are waited for."""
MakeEnvironment = Callable[[int], Any]
"""From a seed to an environment with the methods of `dm_env.Environment`."""


@runtime_checkable
class DmLike(Protocol):
    """The methods of `dm_env.Environment` that are used."""

    def reset(self) -> Any: ...
    def step(self, action: int) -> Any: ...
    def action_spec(self) -> Any: ...
    def observation_spec(self) -> Any: ...


@runtime_checkable
class OneChoice(Protocol):
    """The spec of an action that is one of several."""

    num_values: int


@runtime_checkable
class Numbers(Protocol):
    """The spec of an array whose type is known."""

    shape: tuple[int, ...]
    dtype: Any


class DmState(eqx.Module):
    """Which episode on the host this is: it begins with the draws of `seed`, and `time` steps of it were made."""

    seed: UInt32[Array, ""]
    time: Int32[Array, ""]
    ended: Bool[Array, ""]


class DmEnvironment(eqx.Module):
    """A `dm_env` environment as one of ours; see `dm_environment`."""

    host_number: Int32[Array, ""]
    name: str = eqx.field(static=True)
    num_actions: int = eqx.field(static=True)
    size: int = eqx.field(static=True)
    horizon: int = eqx.field(static=True)

    @property
    def spec(self) -> EnvSpec:
        return EnvSpec(self.name, self.num_actions, Vector(self.size), self.horizon)

    def reset(self, key: Key[Array, ""]) -> tuple[DmState, TimeStep]:
        """Make a fresh environment with a seed from the key, and begin its first episode."""
        seed = jax.random.bits(key, dtype=jnp.uint32)
        state = DmState(seed, jnp.full((), -1, dtype=jnp.int32), jnp.zeros((), dtype=bool))
        return self._call(state, jnp.zeros((), dtype=jnp.int32))

    def step(self, key: Key[Array, ""], state: DmState, action: Int[Array, ""]) -> tuple[DmState, TimeStep]:
        """One transition, on the host; all chance is in the environment's own generator."""
        return self._call(state, action.astype(jnp.int32))

    def _call(self, state: DmState, action: Int32[Array, ""]) -> tuple[DmState, TimeStep]:
        dtype = jax.dtypes.canonicalize_dtype(float)
        number, flag = jax.ShapeDtypeStruct((), dtype), jax.ShapeDtypeStruct((), jnp.bool_)
        shapes = jax.ShapeDtypeStruct((self.size,), dtype), number, flag, flag
        # The same question has the same answer (`_Episodes.ask`), which is all that a pure callback has to promise.
        observation, reward, terminated, truncated = jax.pure_callback(
            functools.partial(_ask, dtype),
            shapes,
            self.host_number,
            state.seed,
            state.time,
            state.ended,
            action,
            vmap_method="broadcast_all",
        )
        after = DmState(state.seed, state.time + 1, state.ended | terminated | truncated)
        return after, TimeStep(observation, jnp.ones((self.num_actions,), dtype=bool), reward, terminated, truncated)


@dataclasses.dataclass
class _Episode:
    """An episode that goes on: the steps made, the last action and what it led to."""

    env: Any
    time: int
    action: int
    answer: tuple[np.ndarray, float, bool, bool]

    @property
    def over(self) -> bool:
        return self.answer[2] or self.answer[3]


class _Episodes:
    """The episodes of one adapter, by their seeds."""

    def __init__(self, make: MakeEnvironment, size: int, horizon: int) -> None:
        self.make, self.size, self.horizon = make, size, horizon
        self.running: dict[int, _Episode] = {}
        self.lock = threading.Lock()  # devices ask in threads of their own

    def ask(self, seed: int, time: int, ended: bool, action: int) -> tuple[np.ndarray, float, bool, bool]:
        """What follows the action at that time of the episode with that seed; asked again, the same."""
        if time < 0:
            self.running = {other: episode for other, episode in self.running.items() if not episode.over}
            return self._begin(seed).answer
        if ended:  # what follows an end is never read
            return np.zeros(self.size), 0.0, True, False
        episode = self._begin(seed) if time == 0 and seed not in self.running else self.running[seed]
        if episode.time == time + 1 and episode.action == action:
            return episode.answer
        if episode.time != time:
            raise PaircreditError(
                f"An episode on the host is at step {episode.time}, but step {time} was asked for; episodes of a "
                "dm_env environment go forward only."
            )
        episode.answer = self._answer(episode.env.step(action), time + 1)
        episode.time, episode.action = time + 1, action
        return episode.answer

    def _begin(self, seed: int) -> _Episode:
        env = self.make(seed)
        self.running[seed] = _Episode(env, 0, 0, self._answer(env.reset(), 0))
        return self.running[seed]

    def _answer(self, now: Any, time: int) -> tuple[np.ndarray, float, bool, bool]:
        observation = np.asarray(now.observation, dtype=float).reshape(-1)
        last, reward = bool(now.last()), 0.0 if now.reward is None else np.asarray(now.reward).item()
        terminated = last and np.asarray(now.discount).item() == 0
        return observation, reward, terminated, not terminated and (last or time >= self.horizon)

    def forget_unused(self, most: int) -> None:
        """Let go of the oldest episodes that were begun and never stepped, but for this many.

        With segments one is begun for every actor and step. One that is needed after all is begun again: it depends on
        its seed alone.
        """
        unused = [seed for seed, episode in self.running.items() if episode.time == 0]
        for seed in unused[: max(len(unused) - most, 0)]:
            del self.running[seed]


_ADAPTERS: dict[int, _Episodes] = {}
_NUMBERS = itertools.count()


def _ask(dtype: np.dtype, *arguments: Any) -> tuple[np.ndarray, ...]:
    """The host's side: any number of questions at once. Nothing in it may wait for the device, which waits for it."""
    number, seed, time, ended, action = (np.asarray(argument) for argument in arguments)
    questions = zip(*(x.reshape(-1).tolist() for x in (number, seed, time, ended, action)), strict=True)
    with contextlib.ExitStack() as locks:
        asked = np.unique(number).tolist()  # always in the same order, so that nobody waits in a circle
        for which in asked:
            locks.enter_context(_ADAPTERS[which].lock)
        answers = [_ADAPTERS[which].ask(*question) for which, *question in questions]
        if (time < 0).any():
            for which in asked:
                _ADAPTERS[which].forget_unused(ROUNDS * number.size)
    observation, reward, terminated, truncated = zip(*answers, strict=True)
    return (
        np.stack(observation).astype(dtype).reshape(*number.shape, -1),
        np.array(reward, dtype).reshape(number.shape),
        np.array(terminated, bool).reshape(number.shape),
        np.array(truncated, bool).reshape(number.shape),
    )


def dm_environment(make: MakeEnvironment, horizon: int, name: str = "dm_env") -> DmEnvironment:
    """A `dm_env` environment that every method can train on.

    Each episode gets an environment of its own, made with a seed from the episode's key, so that trainings repeat as
    all others do. Adapters of environments of the same shape stack into one program. A last step with discount 0 is a
    termination, any other last step a truncation, as is the horizon; discounts within an episode are not used.

    Args:
        make: from a seed (below 2³²) to an environment; one without chance may ignore it.
        horizon: no episode is longer; longer ones are cut there.
        name: for messages.
    """
    if not isinstance(horizon, int) or horizon < 1:
        raise PaircreditError(f"The horizon of {name} is {horizon!r}, but must be a whole number of at least 1.")
    if not callable(make):
        raise PaircreditError(f"{name} needs a function that makes an environment from a seed, not {make!r}.")
    env = make(0)
    if not isinstance(env, DmLike):
        raise PaircreditError(f"What is made for {name} is {env!r}, which has not the methods of a dm_env environment.")
    actions, observation = env.action_spec(), env.observation_spec()
    if not isinstance(actions, OneChoice):
        raise PaircreditError(
            f"The actions of {name} are {actions!r}; only one choice among several (a DiscreteArray) can be learned."
        )
    if not isinstance(observation, Numbers) or np.dtype(observation.dtype).kind not in "biuf":
        raise PaircreditError(
            f"The observations of {name} are {observation!r}; only one array of numbers can be seen, so flatten "
            "whatever they are made of in a wrapper first."
        )
    number = next(_NUMBERS)
    size = math.prod(observation.shape)
    _ADAPTERS[number] = _Episodes(make, size, horizon)
    return DmEnvironment(jnp.asarray(number, dtype=jnp.int32), name, int(actions.num_values), size, horizon)
