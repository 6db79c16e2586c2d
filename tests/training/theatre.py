"""An environment of the device that plays one on the host, so that both ways to train can be compared."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from paircredit.envs.hosted import Hosted


class Theatre(Hosted):
    """Any environment without chance, in pools; `fails_at` breaks a pool at a step."""

    segment: Any
    most_groups: int = eqx.field(static=True, default=1)
    fails_at: int = eqx.field(static=True, default=-1)
    in_graph: bool = eqx.field(static=True, default=False)

    @property
    def spec(self):
        return self.segment.spec

    def groups(self, members):
        return self.most_groups

    def open(self, seeds, turns=None):
        return Stage(self.segment.env, seeds, self.fails_at)

    def raw(self):
        return jax.eval_shape(self.segment.env.reset, jax.random.key(0))[1]

    def read(self, state, raw):
        return jnp.zeros((), dtype=bool), raw


class Stage:
    """Copies of the environment; the step after an end starts another episode."""

    sizes: ClassVar[list[int]] = []
    opened: int = 0
    closed: int = 0

    def __init__(self, env, seeds, fails_at):
        assert (np.asarray(seeds) >= 0).all() and (np.asarray(seeds) < 2**31).all()
        self.keys = jax.random.split(jax.random.key(0), len(seeds))
        self.begin, self.go = jax.jit(jax.vmap(env.reset)), jax.jit(jax.vmap(env.step))
        self.fails_at, self.time = fails_at, 0
        Stage.opened += 1
        Stage.sizes.append(len(seeds))

    def reset(self):
        self.state, now = self.begin(self.keys)
        self.over = np.zeros(len(self.keys), dtype=bool)
        return jax.device_get(now)

    def send(self, actions):
        self.actions = actions

    def receive(self):
        if self.time == self.fails_at:
            raise RuntimeError("the emulator broke")
        self.time += 1
        fresh, stepped = self.begin(self.keys), self.go(self.keys, self.state, jnp.asarray(self.actions))

        def chosen(a, b):
            return np.where(self.over.reshape(-1, *[1] * (a.ndim - 1)), a, b)

        self.state, now = jax.tree.map(chosen, fresh, stepped)
        self.over = now.terminated | now.truncated
        return now

    def close(self):
        Stage.closed += 1
