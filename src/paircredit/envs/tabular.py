"""Finite environments with deterministic transitions, as tables; what exact diagnostics work on."""

from __future__ import annotations

from typing import Protocol

import equinox as eqx
from jaxtyping import Array, Bool, Float, Int

from paircredit.envs.protocol import Environment


class TabularModel(eqx.Module):
    """All there is to know about a finite environment with deterministic transitions.

    Attributes:
        next_state: where action a leads from state s; end states lead to themselves.
        reward_mean: the mean of the reward of that transition (0 in end states).
        reward_variance: its variance.
        legal: which actions may be taken.
        start: the first state of every episode.
        horizon: an upper bound on the length of an episode.
    """

    next_state: Int[Array, "S A"]
    reward_mean: Float[Array, "S A"]
    reward_variance: Float[Array, "S A"]
    legal: Bool[Array, "S A"]
    start: int = eqx.field(static=True)
    horizon: int = eqx.field(static=True)


class TabularEnvironment(Environment, Protocol):
    """An environment that can show its whole model; observations are state indices."""

    def model(self) -> TabularModel:
        """The model that `step` samples from."""
        ...
