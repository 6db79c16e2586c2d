"""All probes side by side: members of one program, padded to one shape, which also puts padding into every batch."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from paircredit.envs import make_environment
from paircredit.envs.probes import Probe
from paircredit.training import Plan, train
from paircredit.types import Trajectory

KINDS = ("value", "observation", "delay", "action", "context", "truncation")
SEEDS = (0, 1)


def padded(probe: Probe, steps: int = 4, contexts: int = 2, actions: int = 2) -> Probe:
    """The same probe with larger tables; no episode gets to what was added, and no action that was is legal."""
    missing = [(0, new - old) for new, old in zip((steps, contexts, actions), probe.rewards.shape, strict=True)]
    return dataclasses.replace(
        probe,
        rewards=jnp.pad(probe.rewards, missing, constant_values=jnp.nan),
        observations=jnp.pad(probe.observations, missing[:2], constant_values=3),
        name="probe",
    )


@cache
def all_probes() -> tuple[Probe, ...]:
    """One of each kind, of one shape."""
    return tuple(padded(make_environment(f"probe-{kind}")) for kind in KINDS)


class Trained:
    """Members that have learned the probes, by the kind of the probe; two seeds of each."""

    def __init__(self, method: Any, updates: int) -> None:
        envs = [env for env in all_probes() for _ in SEEDS]
        self.method = method
        self.state = train([method] * len(envs), envs, [*SEEDS] * len(KINDS), Plan(updates=updates // 2), updates)

    def learner(self, kind: str) -> Any:
        """Both learners of this kind, stacked."""
        return jax.tree.map(lambda x: x[self._members(kind)], self.state.learner)

    def batch(self, kind: str) -> Trajectory:
        """The last batches of both."""
        return jax.tree.map(lambda x: x[self._members(kind)], self.state.trajectory)

    def paid(self, kind: str) -> np.ndarray:
        """Returns of the last batches, [seed, episode]."""
        batch = self.batch(kind)
        return np.asarray(jnp.where(batch.valid, batch.rewards, 0.0).sum(axis=-1))

    def probability(self, kind: str, state: int, action: int) -> np.ndarray:
        """Of an action where there is nothing to remember yet, by seed."""

        def act(learner: Any) -> jax.Array:
            return self.method.policy(learner, self.method.initial_carry(learner), jnp.asarray(state))[0]

        return np.asarray(jax.nn.softmax(jax.vmap(act)(self.learner(kind))))[:, action]

    @staticmethod
    def _members(kind: str) -> slice:
        first = KINDS.index(kind) * len(SEEDS)
        return slice(first, first + len(SEEDS))
