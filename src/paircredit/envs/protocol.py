"""What an environment is: a PyTree of parameters with two pure functions.

The fields of an environment are its parameters. Arrays and floats among them are data, so that environments of the
same structure stack along a member axis and one compiled program trains all of them; what sets shapes (a horizon, a
number of states) is static. An environment never resets itself.

`Environment` is all that training asks for. What an environment may be able to do besides has a protocol each, and
whoever needs the ability asks with `isinstance`: `Summarises` for scalars to record, `TabularEnvironment` for the
exact model, `envs.hosted.HostedEnvironment` for emulators on the host.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
from jaxtyping import Array, Bool, Float, Int, Key

from paircredit.types import PyTree, TimeStep, Trajectory


@dataclasses.dataclass(frozen=True)
class Discrete:
    """Observations are whole numbers 0 .. size−1: tables can represent everything."""

    size: int


@dataclasses.dataclass(frozen=True)
class Pixels:
    """Observations are `PixelObservation`s: a picture, and some bits with it.

    Attributes:
        height: rows.
        width: columns.
        channels: colours, kinds of things, or frames.
        flags: bits.
        stacked: the number of frames in a row that the channels belong to, the newest last.
    """

    height: int
    width: int
    channels: int
    flags: int
    stacked: int = 1

    @property
    def frame(self) -> Pixels:
        """The shape of one of the stacked frames."""
        return dataclasses.replace(self, channels=self.channels // self.stacked, stacked=1)


@dataclasses.dataclass(frozen=True)
class Vector:
    """Observations are vectors of real numbers.

    Attributes:
        size: the number of entries.
        own: the number of entries that are not padding, where environments of several sizes share a program; an array,
            like everything that members may differ in. Networks start as they would without the padding. None: all.
    """

    size: int
    own: Int[Array, ""] | None = dataclasses.field(default=None, compare=False, repr=False)


@dataclasses.dataclass(frozen=True)
class EnvSpec:
    """The shape of an environment, known before anything runs.

    Attributes:
        name: the name in messages and run folders.
        num_actions: the number of actions A.
        observation: the kind of observation.
        horizon: no episode is longer than this many steps; rollouts of whole episodes are padded to it.
        whole_episodes: rollouts hold whole episodes; where they hold segments of episodes, methods that need whole ones
            are refused.
        frames_per_step: frames per step where training is measured in frames (Atari repeats every action).
        watched: what else than the return a person who watches a training is told, of what the environment summarises.
    """

    name: str
    num_actions: int
    observation: Discrete | Pixels | Vector
    horizon: int
    whole_episodes: bool = True
    frames_per_step: int = 1
    watched: tuple[str, ...] = dataclasses.field(default=(), repr=False)


class Environment(Protocol):
    """Anything with these members trains with every method."""

    @property
    def spec(self) -> EnvSpec:
        """The shape of the environment."""

    def reset(self, key: Key[Array, ""]) -> tuple[PyTree, TimeStep]:
        """A fresh state and its first time step (reward 0, neither terminated nor truncated)."""

    def step(self, key: Key[Array, ""], state: PyTree, action: Int[Array, ""]) -> tuple[PyTree, TimeStep]:
        """One transition. What follows an end is never read."""


class InSegments(eqx.Module):
    """Any environment in segments of this many steps: episodes end and begin within a rollout, or go on after it."""

    env: Environment
    steps: int = eqx.field(static=True)

    @property
    def spec(self) -> EnvSpec:
        return dataclasses.replace(self.env.spec, horizon=self.steps, whole_episodes=False)

    def reset(self, key: Key[Array, ""]) -> tuple[PyTree, TimeStep]:
        return self.env.reset(key)

    def step(self, key: Key[Array, ""], state: PyTree, action: Int[Array, ""]) -> tuple[PyTree, TimeStep]:
        return self.env.step(key, state, action)


@runtime_checkable
class Summarises(Protocol):
    """An environment that has more to record of a batch of episodes than their mean return."""

    def summarise(self, trajectory: Trajectory) -> dict[str, Float[Array, ""]]:
        """Scalars by name, which the training loop records beside the return."""


class TabularModel(eqx.Module):
    """A finite environment with deterministic transitions as tables, for exact diagnostics.

    Attributes:
        next_state: the state after action a in state s; end states lead to themselves.
        reward_mean: the mean of the reward of that transition (0 in end states).
        reward_variance: its variance.
        legal: the actions that may be taken.
        start: the first state of every episode.
        horizon: an upper bound on the length of an episode.
    """

    next_state: Int[Array, "S A"]
    reward_mean: Float[Array, "S A"]
    reward_variance: Float[Array, "S A"]
    legal: Bool[Array, "S A"]
    start: int = eqx.field(static=True)
    horizon: int = eqx.field(static=True)


@runtime_checkable
class TabularEnvironment(Environment, Protocol):
    """An environment that can show its whole model; observations are state indices."""

    def model(self) -> TabularModel:
        """The model that `step` samples from."""


@runtime_checkable
class EpisodesOnHost(Protocol):
    """An environment whose episodes are on the host, where each is known by this number and a member's seed.

    No two members of a training may have both in common: they would step the same episodes.
    """

    @property
    def host_number(self) -> Any:
        """The number of this environment among all such ones of the process."""


@runtime_checkable
class Layered(TabularEnvironment, Protocol):
    """One whose states come one layer after the other: values can be masked layer by layer."""

    def layers(self) -> Any:
        """The layer of every state, counted from 1."""


class EnvConfig(Protocol):
    """The plain settings of an environment, as a command line or a manifest spells them."""

    def build(self) -> Any:
        """The environment itself; bad settings are refused with a `PaircreditError`."""
