"""Training where environments live on the host: emulators step on the CPU while the device acts and learns.

Members are trained in groups, each with a pool of environments and a thread of its own; with several devices, groups
take turns at them. A group does what the compiled loop does, with the same functions and in the same order, so nothing
changes for a member; but while one group waits for its emulators, the device works for another one.

The parts of an update are compiled programs of their own (`Programs`). A rollout is either a compiled program with the
pool's steps in it, in which the device waits for the emulators, or a loop of Python over compiled steps, in which it
need not.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
import operator
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from functools import partial
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from paircredit.envs.hosted import HostedEnvironment, Pool, PoolInGraph, Turns, pools_at_a_time
from paircredit.errors import PaircreditError
from paircredit.methods.agent import meta_learn
from paircredit.networks.perception import prepare
from paircredit.training import loop
from paircredit.training.loop import LoopState, Plan, Summary
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

LEAD = 0.5
"""The part of a segment that a group may be ahead of the slowest; where rollouts are compiled it is a whole segment."""


class HostedMembers:
    """The members of a training in groups, and their pools; a context manager that closes these at the end."""

    def __init__(self, methods: Sequence[Any], env: HostedEnvironment, plan: Plan) -> None:
        """Members of methods of the same structure on one environment; pools are opened when they start."""
        if plan.protocol != "online":
            raise PaircreditError(f"On {env.spec.name} only the online protocol can be used.")
        devices = jax.local_devices()
        sizes = group_sizes(len(methods), env.groups(len(methods)))
        self._shares_of, self._joined = jax.jit(partial(_shares, sizes)), jax.jit(_joined)
        programs = {size: Programs(env, plan, methods[0]) for size in sizes}
        self._pace = Pace(len(sizes), env.spec.horizon * (1.0 if env.in_graph else LEAD))
        self._turns = Turns(pools_at_a_time(len(sizes)))
        self.groups = [
            Group(
                env,
                programs[size],
                partial(self._pace.forward, index),
                self._turns,
                size,
                devices[index % len(devices)],
            )
            for index, size in enumerate(sizes)
        ]

    def __enter__(self) -> HostedMembers:
        return self

    def __exit__(self, *error: object) -> None:
        for group in self.groups:
            group.close()
        self._turns.close()

    def start_members(
        self, methods: PyTree, envs: PyTree, plan: Plan, keys: Key[Array, " M"], weights: PyTree = None
    ) -> LoopState:
        """As `loop.start_members`."""
        return self._on_each(Group.start, methods, keys, weights)

    def run_chunk(self, methods: PyTree, envs: PyTree, plan: Plan, state: LoopState) -> tuple[LoopState, Summary]:
        """As `loop.run_chunk`. Where no emulators run yet, because a training goes on, actors begin new episodes.

        The memory of the learners is taken over.
        """
        return self._on_each(lambda group, *given: group.chunk(plan.updates, *given), methods, state)

    def _on_each(self, work: Callable[..., PyTree], *arguments: PyTree) -> Any:
        """Work of all groups side by side, each with its share of the arguments; their results, joined again."""
        shares = [arguments] if len(self.groups) == 1 else self._shares_of(arguments)

        def on_its_device(number: int, group: Group, share: tuple[PyTree, ...]) -> PyTree:
            try:
                with jax.default_device(group.device):
                    return work(group, *jax.device_put(share, group.device))
            finally:
                self._pace.leave(number)

        self._pace.begin()
        with ThreadPoolExecutor(len(self.groups)) as executor:
            futures = [
                executor.submit(on_its_device, number, group, share)
                for number, (group, share) in enumerate(zip(self.groups, shares, strict=True))
            ]
            try:
                wait(futures, return_when=FIRST_EXCEPTION)
            finally:
                if not all(future.done() and future.exception() is None for future in futures):
                    self._pace.stop()
        failed = [error for error in (future.exception() for future in futures) if error is not None]
        if failed:
            raise next((error for error in failed if not isinstance(error, StoppedError)), failed[0])
        results = [future.result() for future in futures]
        return results[0] if len(results) == 1 else self._joined(jax.device_put(results, self.groups[0].device))


@dataclasses.dataclass(eq=False)
class Group:
    """Some members and their pool; used by one thread at a time.

    `forward` is told after this many steps, and does not come back before the group may go on. `seconds` says where the
    time of all chunks (`all`; `working`, while the thread had a core) went: waiting for `emulators` (steps of the pool,
    and its turn; within a compiled rollout nobody can tell), for the `device` (actions, and what it had to do before
    them) and for `others` (groups that are after); handing over the programs of steps (`acting`) and all others
    (`learning`).
    """

    env: HostedEnvironment
    programs: Programs
    forward: Callable[[int], None]
    turns: Turns
    members: int
    device: jax.Device
    pool: Pool | None = None
    seconds: defaultdict[str, float] = dataclasses.field(default_factory=lambda: defaultdict(float))
    _in_flight: PyTree = ()

    def start(self, methods: PyTree, keys: Key[Array, " m"], weights: PyTree) -> LoopState:
        learner, actor_keys, noise, keys = self.programs.start(methods, keys, weights)
        trajectory, actors = self._collect(methods, learner, self._open(methods, learner, actor_keys), noise)
        return LoopState(learner, trajectory, keys, actors)

    def chunk(self, updates: int, methods: PyTree, state: LoopState) -> tuple[LoopState, Summary]:
        began, worked, summaries = time.perf_counter(), time.thread_time(), []
        if self.pool is None:
            fresh = self._open(methods, state.learner, state.key)
            # As after an end: the first step is none of an episode, and nobody joins the games before and after.
            known = dataclasses.replace(
                fresh,
                over=jnp.ones_like(fresh.over),
                last_return=state.actors.last_return,
                ended=state.actors.ended,
            )
            state = dataclasses.replace(state, actors=known)
        for _ in range(updates):
            with self._counted("learning"):
                learner, kept, noise, keys, summary = self.programs.learn(
                    methods, state.learner, state.trajectory, state.key, state.actors
                )
            summaries.append(summary)
            trajectory, actors = self._collect(methods, learner, state.actors, noise)
            if self.programs.meta is not None:
                with self._counted("learning"):
                    learner = self.programs.meta(methods, learner, kept, trajectory)
            state = LoopState(learner, trajectory, keys, actors)
        # On the host: a program that stacks would be compiled for every number of updates.
        found = {name: np.stack([np.asarray(one[name]) for one in summaries], axis=1) for name in summaries[0]}
        self.wait()
        self.seconds["all"] += time.perf_counter() - began
        self.seconds["working"] += time.thread_time() - worked
        return state, jax.tree.map(jnp.asarray, found)

    def close(self) -> None:
        """Let go of the pool, once no program steps it any more."""
        self.wait()
        if self.pool is not None:
            self.pool.close()
        self.pool = None

    def wait(self) -> None:
        """Until no program steps the pool; what went wrong in one is told to those who look at its results."""
        with contextlib.suppress(Exception):
            jax.block_until_ready(self._in_flight)
        self._in_flight = ()

    def _open(self, methods: PyTree, learner: PyTree, keys: Key[Array, " m"]) -> Actors:
        """A pool with seeds from the members' keys, and actors at the beginning of their episodes."""
        data = np.asarray(jax.random.key_data(keys)).reshape(self.members, -1)
        episodes = self.programs.episodes
        seeds = [np.random.SeedSequence(own.tolist()).generate_state(episodes) >> 1 for own in data]
        self.pool = self.env.open(np.concatenate(seeds).astype(np.int64), self.turns)
        return self.programs.begin(methods, learner, self.by_member(self.pool.reset()))

    def _collect(
        self, methods: PyTree, learner: PyTree, actors: Actors, noise: tuple[Array, ...]
    ) -> tuple[Trajectory, Actors]:
        assert self.pool is not None
        own = self.programs.taken_apart(methods, learner)
        if self.env.in_graph:
            with self._counted("others"):
                self.forward(self.env.spec.horizon)
            pool = cast(PoolInGraph, self.pool)
            self._in_flight = self.programs.rollout_of(pool)(pool.handle, own, actors, noise)
            return self._in_flight
        steps: list[Recorded] = []
        with self._counted("acting"):
            actions, carry = self.programs.act(own, actors, noise[0])
        for following in (*noise[1:], None):
            with self._counted("others"):
                self.forward(1)
            with self._counted("device"):
                chosen = np.asarray(actions).reshape(-1)
            with self._counted("emulators"):
                self.pool.send(chosen)
                raw = self.by_member(self.pool.receive())
            before, done = actors, actions
            with self._counted("acting"):
                if following is None:
                    actors, outcome = self.programs.follow(own, before, done, carry, raw)
                else:
                    actors, outcome, actions, carry = self.programs.follow_and_act(
                        own, before, done, carry, raw, following
                    )
            steps.append(recorded(before, done, outcome))
        with self._counted("learning"):
            return self.programs.segment(steps, actors), actors

    @contextlib.contextmanager
    def _counted(self, what: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.seconds[what] += time.perf_counter() - began

    def by_member(self, raw: PyTree) -> PyTree:
        """What a pool says, with an axis for members and one for the actors of each."""
        return jax.tree.map(lambda x: x.reshape(self.members, -1, *x.shape[1:]), raw)


class StoppedError(Exception):
    """Another group failed, or somebody interrupted."""


class Pace:
    """How far groups are: one that is too far ahead waits, so that all come to the end of a chunk at the same time.

    Otherwise, when the first is done, too few emulators run to keep all cores busy.
    """

    def __init__(self, groups: int, lead: float) -> None:
        """Groups that may be `lead` steps ahead of the slowest: enough that some can learn while others act."""
        self._steps, self._lead = [0.0] * groups, lead
        self._changed, self._stopped = threading.Condition(), False

    def begin(self) -> None:
        """All are abreast again."""
        self._steps = [0.0] * len(self._steps)

    def forward(self, group: int, steps: int) -> None:
        """A group has gone this many steps; wait, if it is too far ahead, or raise a `StoppedError`."""
        with self._changed:
            self._steps[group] += steps
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._stopped or self._steps[group] <= min(self._steps) + self._lead)
            if self._stopped:
                raise StoppedError

    def stop(self) -> None:
        """No group goes on."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def leave(self, group: int) -> None:
        """A group is done, or has failed: nobody waits for it any more."""
        with self._changed:
            self._steps[group] = math.inf
            self._changed.notify_all()


def group_sizes(members: int, groups: int) -> list[int]:
    """How many members each group has: as equal as can be, the larger ones first."""
    return [members // groups + (index < members % groups) for index in range(groups)]


def _shares(sizes: Sequence[int], tree: PyTree) -> list[PyTree]:
    """The part of each group, of leaves with a leading axis of all members."""
    slices = [slice(end - size, end) for size, end in zip(sizes, itertools.accumulate(sizes), strict=True)]
    return [jax.tree.map(operator.itemgetter(own), tree) for own in slices]


def _joined(parts: Sequence[PyTree]) -> PyTree:
    """The parts of all groups, one after the other."""
    return jax.tree.map(lambda *own: jnp.concatenate(own), *parts)


class Programs:
    """What groups of one size compute, compiled once for all of them; everything is mapped over a group's members."""

    def __init__(self, env: HostedEnvironment, plan: Plan, method: Any) -> None:
        self.env, self.plan, self.episodes = env, plan, method.episodes
        self.start, self.begin, self.learn = _compiled(self._start), _compiled(self._begin), _compiled(self._learn, 1)
        self.act, self.follow, self.segment = _compiled(self._act), _compiled(self._follow), _compiled(self._segment)
        self.follow_and_act = _compiled(self._follow_and_act)
        self.meta = _compiled(jax.vmap(meta_learn), 1) if loop.improves_weights(method, plan) else None
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
            actor_key, rollout_key = jax.random.split(rollout_key)
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
        """One program instead of two; its results hold nothing that the host has already, as every array counts."""
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
