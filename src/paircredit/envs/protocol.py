"""What an environment is: a PyTree of parameters with two pure functions.

The fields of an environment are its parameters. Arrays and floats among them are data, so that environments of the
same structure stack along a member axis and one compiled program trains all of them; what sets shapes (a horizon, a
number of states) is static. An environment never resets itself.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Protocol, runtime_checkable

from jaxtyping import Array, Int, Key

from paircredit.types import PyTree, TimeStep, Trajectory


@dataclasses.dataclass(frozen=True)
class Discrete:
    """Observations are whole numbers 0 .. size−1: tables can represent everything."""

    size: int


@dataclasses.dataclass(frozen=True)
class Pixels:
    """Observations are `PixelObservation`s: a picture, and some bits beside it.

    Attributes:
        height: rows.
        width: columns.
        channels: colours, kinds of things, or frames.
        flags: bits.
        stacked: the channels are those of so many frames in a row, the newest last.
    """

    height: int
    width: int
    channels: int
    flags: int
    stacked: int = 1

    @property
    def frame(self) -> Pixels:
        """One of the frames."""
        return dataclasses.replace(self, channels=self.channels // self.stacked, stacked=1)


@dataclasses.dataclass(frozen=True)
class Vector:
    """Observations are vectors of real numbers.

    Attributes:
        size: how many.
        own: how many of them are not padding, where environments of several sizes share a program; data, as all that
            members may differ in. Networks then start as they would without the padding. None: all of them.
    """

    size: int
    own: Int[Array, ""] | None = dataclasses.field(default=None, compare=False, repr=False)


@dataclasses.dataclass(frozen=True)
class EnvSpec:
    """The shape of an environment, known before anything runs.

    Attributes:
        name: for messages and run folders.
        num_actions: the number of actions A.
        observation: the kind of observation.
        horizon: no episode is longer than this many steps; rollouts of whole episodes are padded to it.
        whole_episodes: rollouts hold whole episodes; where they are pieces of episodes, methods that need the whole are
            refused.
        frames_per_step: what a step counts where training is measured in frames (Atari: every action is repeated).
    """

    name: str
    num_actions: int
    observation: Discrete | Pixels | Vector
    horizon: int
    whole_episodes: bool = True
    frames_per_step: int = 1


class Environment(Protocol):
    """Anything with these members trains with every method."""

    @property
    def spec(self) -> EnvSpec:
        """The shape of the environment."""
        ...

    def reset(self, key: Key[Array, ""]) -> tuple[PyTree, TimeStep]:
        """A fresh state and its first time step (reward 0, neither terminated nor truncated)."""
        ...

    def step(self, key: Key[Array, ""], state: PyTree, action: Int[Array, ""]) -> tuple[PyTree, TimeStep]:
        """One transition. What follows an end is never read."""
        ...


@runtime_checkable
class Summarises(Protocol):
    """An environment that knows more to record of a batch than its return."""

    def summarise(self, trajectory: Trajectory) -> dict[str, Array]:
        """Scalars by name."""
        ...


@runtime_checkable
class EpisodesOnHost(Protocol):
    """An environment whose episodes are on the host, where each is known by this number and a member's seed.

    No two members of a training may have both in common: they would step the same episodes.
    """

    @property
    def host_number(self) -> Any:
        """The number of this environment among all such ones of the process."""
        ...


class EnvConfig(Protocol):
    """The plain settings of an environment, as a command line or a manifest spells them."""

    def build(self) -> Any:
        """The environment itself; bad settings are refused with a `PaircreditError`."""
        ...
