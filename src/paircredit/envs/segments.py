"""Any environment in segments of this many steps, for agents that do not wait for the end of an episode."""

from __future__ import annotations

import dataclasses
from typing import Any

import equinox as eqx
from jaxtyping import Array, Int, Key

from paircredit.envs.protocol import EnvSpec
from paircredit.types import PyTree, TimeStep


class InSegments(eqx.Module):
    """The same environment, of which a rollout is a segment: episodes end and begin within it, or go on after it.

    Attributes:
        env: the environment.
        steps: of a segment.
    """

    env: Any
    steps: int = eqx.field(static=True)

    @property
    def spec(self) -> EnvSpec:
        spec: EnvSpec = self.env.spec
        return dataclasses.replace(spec, horizon=self.steps, whole_episodes=False)

    def reset(self, key: Key[Array, ""]) -> tuple[PyTree, TimeStep]:
        state: tuple[PyTree, TimeStep] = self.env.reset(key)
        return state

    def step(self, key: Key[Array, ""], state: PyTree, action: Int[Array, ""]) -> tuple[PyTree, TimeStep]:
        following: tuple[PyTree, TimeStep] = self.env.step(key, state, action)
        return following
