"""What is computed where environments live on the host: the parts of an update, each a compiled program of its own.

A rollout is either a compiled program with the pool's steps in it, or a loop of Python over compiled steps: in the
first the device waits for the emulators, in the second it need not.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from paircredit.envs.hosted import HostedEnvironment, PoolInGraph
from paircredit.methods.agent import meta_learn
from paircredit.networks.perception import prepare
from paircredit.training import loop
from paircredit.training.loop import LoopState, Plan
from paircredit.training.rollout import (
    Actors,
    Outcome,
    Recorded,
    act,
    actors_at,
    follow,
    noise_of_actions,
    recorded,
    that_start_again,
    trajectory_of,
)
from paircredit.types import PyTree, Trajectory


class Programs:
    """What groups of one size compute, compiled once for all of them; everything is mapped over a group's members."""

    def __init__(self, env: HostedEnvironment, plan: Plan, method: Any) -> None:
        self.env, self.plan, self.episodes = env, plan, method.episodes
        self.start, self.begin, self.learn = _compiled(self._start), _compiled(self._begin), _compiled(self._learn, 1)
        self.act, self.follow, self.segment = _compiled(self._act), _compiled(self._follow), _compiled(self._segment)
        self.follow_and_act = _compiled(self._follow_and_act)
        self.meta = _compiled(self._meta, 1) if loop.improves_weights(method, plan) else None
        self._rollout: Any = None
        self._structure: Any = None
        self._lock = threading.Lock()

    def taken_apart(self, methods: PyTree, learner: PyTree) -> list[Array]:
        """The leaves of both, for the programs of steps: a tree that is taken apart anew costs more than a step."""
        leaves, self._structure = jax.tree.flatten((methods, learner))  # the structure is the same in all groups
        return leaves

    def rollout_of(self, pool: PoolInGraph) -> Any:
        """The compiled rollout. That of the first pool serves all of them: which one is stepped, its handle says."""
        with self._lock:
            if self._rollout is None:
                _ = pool.handle  # which also makes the emulator's functions known
                self._rollout = _compiled(lambda *given: self._in_graph(pool, *given))
        return self._rollout

    def _start(self, methods: PyTree, keys: Array, weights: PyTree) -> tuple:
        def one(method: Any, key: Array, weights: PyTree) -> tuple:
            learner, rollout_key, key = loop.fresh_learner(method, self.env, key, weights)
            actor_key, rollout_key = loop.keys_of_actors(rollout_key)
            return learner, actor_key, self._noise(rollout_key), key

        learner, actor_keys, noise, keys = jax.vmap(one)(methods, keys, weights)
        return learner, actor_keys, _by_time(noise), keys

    def _begin(self, methods: PyTree, learner: PyTree, raw: PyTree) -> Actors:
        def one(method: Any, learner: Any, raw: PyTree) -> Actors:
            return that_start_again(actors_at(method, learner, *jax.vmap(lambda own: self.env.read(None, own))(raw)))

        return jax.vmap(one)(methods, learner, raw)

    def _learn(self, methods: PyTree, learner: PyTree, trajectory: Trajectory, keys: Array, actors: Actors) -> tuple:
        def one(method: Any, state: LoopState) -> tuple:
            learner, kept, rollout_key, key, summary = loop.learn(method, self.env, self.plan, state)
            return learner, kept, self._noise(rollout_key), key, summary

        states = LoopState(learner, trajectory, keys, actors)
        learner, kept, noise, keys, summary = jax.vmap(one)(methods, states)
        return learner, kept, _by_time(noise), keys, summary

    def _noise(self, key: Array) -> Array:
        return noise_of_actions(key, self.env.spec, self.episodes)[0]

    def _act(self, own: Sequence[Array], actors: Actors, gumbel: Array) -> tuple[Array, PyTree]:
        def one(method: Any, learner: Any, own: Actors, gumbel: Array) -> tuple[Array, PyTree]:
            return act(method, prepare(learner), own.carry, own.observation, own.legal, gumbel)

        methods, learner = jax.tree.unflatten(self._structure, own)
        return jax.vmap(one)(methods, learner, actors, gumbel)

    def _follow(
        self, own: Sequence[Array], actors: Actors, actions: Array, carry: PyTree, raw: PyTree
    ) -> tuple[Actors, Outcome]:
        def one(method: Any, learner: Any, own: Actors, actions: Array, carry: PyTree, raw: PyTree) -> tuple:
            state, after = jax.vmap(self.env.read)(own.state, raw)
            return follow(method, learner, own, actions, carry, state, after)

        methods, learner = jax.tree.unflatten(self._structure, own)
        return jax.vmap(one)(methods, learner, actors, actions, carry, raw)

    def _follow_and_act(self, own: Sequence[Array], *given: Any) -> tuple:
        """One program instead of two: a step costs on the host as much as it talks to the device.

        Every array that goes there or comes back counts, so the results hold nothing that the host has already.
        """
        *before, gumbel = given
        actors, outcome = self._follow(own, *before)
        return actors, outcome, *self._act(own, actors, gumbel)

    def _segment(self, steps: Sequence[Recorded], actors: Actors) -> Trajectory:
        stacked = jax.tree.map(lambda *x: jnp.stack(x, axis=1), *steps)
        return jax.vmap(trajectory_of)(stacked, actors)

    def _in_graph(
        self, pool: PoolInGraph, handle: Array, own: Sequence[Array], actors: Actors, noise: tuple[Array, ...]
    ) -> tuple[Trajectory, Actors]:
        shape = noise[0].shape[:2]

        def step(before: tuple[Array, Actors], gumbel: Array) -> tuple[tuple[Array, Actors], Recorded]:
            handle, now = before
            actions, carry = self._act(own, now, gumbel)
            handle, raw = pool.in_graph(handle, actions.reshape(-1).astype(jnp.int32))
            raw = jax.tree.map(lambda x: x.reshape(*shape, *x.shape[1:]), raw)
            following, outcome = self._follow(own, now, actions, carry, raw)
            return (handle, following), recorded(now, actions, outcome)

        (_, actors), steps = jax.lax.scan(step, (handle, actors), jnp.stack(noise))
        stacked = jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), steps)
        return jax.vmap(trajectory_of)(stacked, actors), actors

    def _meta(self, methods: PyTree, learner: PyTree, kept: PyTree, trajectory: Trajectory) -> PyTree:
        return jax.vmap(meta_learn)(methods, learner, kept, trajectory)


def _by_time(noise: Array) -> tuple[Array, ...]:
    """[m, T, B, A] as T arrays: the host takes one after another."""
    return tuple(noise[:, t] for t in range(noise.shape[1]))


def _compiled(function: Callable[..., Any], *taken_over: int) -> Callable[..., Any]:
    """A compiled function that only one thread compiles; the others wait for it.

    The memory of the arguments with the numbers `taken_over` becomes that of the results: learners may be large.
    """
    program = jax.jit(function, donate_argnums=taken_over, compiler_options=loop.compiler_options())
    lock, ready = threading.Lock(), threading.Event()

    def call(*arguments: Any) -> Any:
        if ready.is_set():
            return program(*arguments)
        with lock:
            result = program(*arguments)
            ready.set()
            return result

    return call
