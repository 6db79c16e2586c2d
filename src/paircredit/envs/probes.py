"""Probe environments: each needs one more ability than the one before, and each has a known answer.

A method that fails a probe has a fault that no benchmark would show as clearly. The five classical ones, in order:
learn a constant value; tell observations apart; carry value over time; prefer an action; prefer an action depending on
the observation. A sixth is cut off in mid-life: whoever takes truncation for death gets its value wrong.
"""

from __future__ import annotations

import dataclasses
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from paircredit.envs.protocol import Discrete, EnvSpec
from paircredit.errors import refuse_unknown
from paircredit.types import TimeStep

ProbeKind = Literal["value", "observation", "delay", "action", "context", "truncation"]


class Probe(eqx.Module):
    """A probe as small tables over (step, context), where the context (0 or 1) is drawn at reset.

    Its kind is data, so probes that are padded to one shape can be trained side by side in one program: of the tables
    only the first `steps`, `contexts` (1 where the context does not matter) and `actions` are used. There is one more
    step of observations than of rewards. Where it `truncates`, the last step cuts the episode and does not end it.
    """

    rewards: Float[Array, "T C A"]
    observations: Int[Array, "T_plus_1 C"]
    steps: Int[Array, ""]
    contexts: Int[Array, ""]
    actions: Int[Array, ""]
    truncates: Bool[Array, ""]
    name: str = eqx.field(static=True)

    @property
    def spec(self) -> EnvSpec:
        return EnvSpec(self.name, self.rewards.shape[-1], Discrete(4), self.rewards.shape[-3])

    def reset(self, key: Key[Array, ""]) -> tuple[tuple[Array, Array], TimeStep]:
        context = jax.random.randint(key, (), 0, self.contexts)
        state = (jnp.zeros((), dtype=jnp.int32), context)
        return state, self._time_step(state, jnp.zeros_like(self.rewards[0, 0, 0]))

    def step(
        self, key: Key[Array, ""], state: tuple[Array, Array], action: Int[Array, ""]
    ) -> tuple[tuple[Array, Array], TimeStep]:
        time, context = state
        reward = self.rewards[time, context, action]
        following = (time + 1, context)
        return following, self._time_step(following, reward)

    def _time_step(self, state: tuple[Array, Array], reward: Float[Array, ""]) -> TimeStep:
        time, context = state
        over = time >= self.steps
        return TimeStep(
            observation=self.observations[time, context],
            legal=jnp.arange(self.spec.num_actions) < self.actions,
            reward=reward,
            terminated=over & ~self.truncates,
            truncated=over & self.truncates,
        )


@dataclasses.dataclass(frozen=True)
class ProbeConfig:
    """Settings of a probe environment."""

    kind: ProbeKind = "value"
    """Which ability is probed."""

    def build(self) -> Probe:
        """The environment, observations numbered 0 to 3 (3: the end)."""
        refuse_unknown("probe", self.kind, _TABLES)
        rewards, observations = _TABLES[self.kind]
        table = jnp.asarray(rewards, dtype=float)
        steps, contexts, actions = (jnp.asarray(size) for size in table.shape)
        seen, truncates = jnp.asarray(observations, dtype=jnp.int32), jnp.asarray(self.kind == "truncation")
        return Probe(table, seen, steps, contexts, actions, truncates, f"probe-{self.kind}")


_TABLES: dict[ProbeKind, tuple[list, list]] = {
    "value": ([[[1.0]]], [[0], [3]]),  # one step, reward 1: v(0) = 1
    "observation": ([[[-1.0], [1.0]]], [[0, 1], [3, 3]]),  # reward ±1 by what is seen: v(0) = −1, v(1) = 1
    "delay": ([[[0.0]], [[1.0]]], [[0], [1], [3]]),  # two steps, reward 1 at the end: v(0) = γ, v(1) = 1
    "action": ([[[-1.0, 1.0]]], [[0], [3]]),  # action 1 pays 1, action 0 pays −1
    "context": ([[[1.0, -1.0], [-1.0, 1.0]]], [[0, 1], [3, 3]]),  # the action must match the observation
    "truncation": ([[[1.0]]] * 4, [[0]] * 5),  # reward 1 for ever, cut after 4 steps: v(0) = 1 / (1 − γ)
}
"""Rewards and observations of every probe."""
