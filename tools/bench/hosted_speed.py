"""Training speed where environments live on the host, beside what the emulators can do by themselves.

Emulators alone and training take turns, so that whatever else the machine does slows both down.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from paircredit.training.hosted import Group, HostedMembers
from paircredit.training.loop import LoopState, Plan
from paircredit.training.members import member_keys, stack_members
from tools.bench.cores import cores_between, work_so_far
from tools.bench.one_pool import OnePool, play
from tools.bench.training_speed import BenchSpec, refuse_what_cannot_be_timed


def bench_hosted(specs: Iterable[BenchSpec]) -> Iterator[dict[str, Any]]:
    """Time methods on environments on the host, one after another.

    Args:
        specs: what to time. Those that have as many emulators of the same kind share the one pool of them all.

    Yields:
        For each, numbers for a table and for JSON. Steps per second while training, of the environments alone in one
        pool, which is what a vector of environments does by itself, and of them alone in the groups' pools; the shares
        of the first in the others. How busy the device is, by what its programs take when nothing else runs (None on a
        CPU, whose cores the emulators use as well). What the groups' threads did: wait for emulators and their turn,
        for actions, or for groups that are after, hand programs over, and for how much of all that they had a core;
        where they neither wait nor have a core, they wait for each other or for a core. How long groups have waited at
        the ends of chunks until all were done, as a share of all. And how many cores the emulators and all other
        threads had.
    """
    pools: dict[Any, OnePool] = {}
    with contextlib.ExitStack() as stack:
        for spec in specs:
            method, env = refuse_what_cannot_be_timed(spec)
            actors = spec.members * method.episodes
            kind = spec.env, json.dumps(spec.env_settings, sort_keys=True), actors
            if kind not in pools:
                pools[kind] = OnePool(spec.env, spec.env_settings, actors)
                stack.callback(pools[kind].close)
            yield _bench_one(spec, method, env, pools[kind])


def _bench_one(spec: BenchSpec, method: Any, env: Any, pool: OnePool) -> dict[str, Any]:
    methods, plan = [method] * spec.members, Plan(updates=spec.updates)
    stacked, actors = stack_members(methods), spec.members * method.episodes
    horizon = spec.updates * env.spec.horizon
    steps = actors * horizon
    with HostedMembers(methods, env, plan) as members:
        began = time.perf_counter()
        state = members.start_members(stacked, env, plan, member_keys(range(spec.members)))
        state, _ = members.run_chunk(stacked, env, plan, state)
        started = time.perf_counter() - began
        pool.play(0)
        for group in members.groups:
            group.seconds.clear()
        processes = [pool.process, *(getattr(group.pool, "process", None) for group in members.groups)]
        helpers = [process.pid for process in processes if process is not None]
        together, alone, training = _Turns(helpers), _Turns(helpers), _Turns(helpers)
        for _ in range(spec.repeats):
            with together.taken():
                pool.play(horizon)
            with alone.taken():
                _step_all(members, horizon)
            with training.taken():
                state, _ = jax.block_until_ready(members.run_chunk(stacked, env, plan, state))
        waiting = [group.seconds for group in members.groups]
        device = _device_seconds(members.groups, stacked, state)
        devices = len({group.device for group in members.groups})
    per_update = statistics.median(training.seconds) / spec.updates

    def share(what: str) -> float:
        """Of the time of the groups' threads."""
        return sum(own[what] for own in waiting) / sum(own["all"] for own in waiting)

    return {
        "method": spec.method,
        "env": spec.env,
        "preset": spec.preset,
        "settings": {**spec.env_settings, **spec.method_settings},
        "updates": spec.updates,
        "members": spec.members,
        "groups": len(waiting),
        "episodes": method.episodes,
        "horizon": env.spec.horizon,
        "rollouts": "in-graph" if env.in_graph else "host",
        "seconds_per_update": per_update,
        "steps_per_second": steps / statistics.median(training.seconds),
        "frames_per_second": env.spec.frames_per_step * steps / statistics.median(training.seconds),
        "one_pool_steps_per_second": steps / statistics.median(together.seconds),
        "share_of_one_pool": training.share_of(together),
        "emulators_alone_steps_per_second": steps / statistics.median(alone.seconds),
        "emulators_busy": training.share_of(alone),
        "device_seconds": device,
        "devices": devices,
        "device_busy": sum(device.values()) / per_update / devices if jax.default_backend() != "cpu" else None,
        "threads_wait_for_emulators": share("emulators"),
        "threads_wait_for_device": share("device"),
        "threads_wait_for_other_groups": share("others"),
        "threads_hand_over_steps": share("acting"),
        "threads_hand_over_learning": share("learning"),
        "threads_have_a_core": share("working"),
        "groups_wait_at_the_end": 1 - sum(own["all"] for own in waiting) / len(waiting) / sum(training.seconds),
        "cores": os.cpu_count(),
        "cores_while_training": training.cores(),
        "cores_alone": alone.cores(),
        "cores_in_one_pool": together.cores(),
        "start_seconds": started,
        "device": {"gpu": "cuda"}.get(jax.default_backend(), jax.default_backend()),
    }


class _Turns:
    """What is done time and again, in turns with other things.

    Attributes:
        seconds: of each time.
    """

    def __init__(self, helpers: Sequence[int]) -> None:
        """Nothing was done yet.

        Args:
            helpers: numbers of processes that work for this one.
        """
        self.seconds: list[float] = []
        self._helpers = helpers
        self._cores: list[dict[str, float]] = []

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        """Once more."""
        before = work_so_far(self._helpers)
        yield
        after = work_so_far(self._helpers)
        self.seconds.append(after.at - before.at)
        self._cores.append(cores_between(before, after))

    def share_of(self, other: _Turns) -> float:
        """Of the other's speed, turn by turn: whatever else the machine does slows both down."""
        return statistics.median([b / a for a, b in zip(self.seconds, other.seconds, strict=True)])

    def cores(self) -> dict[str, float]:
        """Of every kind of thread, in the turn that had the median number of all."""
        return sorted(self._cores, key=lambda cores: sum(cores.values()))[len(self._cores) // 2]


def _step_all(members: HostedMembers, steps: int) -> None:
    """Random actions in all pools side by side, as fast as they go."""

    def drive(number: int) -> None:
        group = members.groups[number]
        assert group.pool is not None
        play(group.pool, group.members * group.programs.episodes, group.env.spec.num_actions, steps, number)

    with ThreadPoolExecutor(len(members.groups)) as executor:
        list(executor.map(drive, range(len(members.groups))))


def _device_seconds(groups: Sequence[Group], methods: Any, state: LoopState) -> dict[str, float]:
    """What the device computes per update of all groups, program by program, when nothing else runs."""
    total: Counter[str] = Counter()
    for members, group in {group.members: group for group in groups}.items():
        alike = sum(other.members == members for other in groups)
        total.update({name: alike * seconds for name, seconds in _seconds_of_one(group, methods, state).items()})
    return dict(total)


def _seconds_of_one(group: Group, methods: Any, state: LoopState) -> dict[str, float]:
    """The same of one group; which members it computes for makes no difference."""
    assert group.pool is not None
    methods, state = jax.device_put(jax.tree.map(lambda x: x[: group.members], (methods, state)), group.device)
    programs, horizon, actors = group.programs, group.env.spec.horizon, state.actors

    def learn(learner: Any) -> Any:
        return programs.learn(methods, learner, state.trajectory, state.key, actors)

    learner, kept, noise, _, _ = learn(jax.tree.map(jnp.copy, state.learner))
    actions, carry = programs.act(programs.taken_apart(methods, learner), actors, noise[0])
    group.pool.send(np.asarray(actions).reshape(-1))
    raw = group.by_member(group.pool.receive())
    parts: dict[str, tuple[int, Callable[[Any], Any]]] = {
        "acting": (
            horizon,
            lambda learner: programs.follow_and_act(
                programs.taken_apart(methods, learner), actors, actions, carry, raw, noise[0]
            ),
        ),
        "learning": (1, learn),
    }
    if programs.meta is not None:
        meta = programs.meta
        parts["meta"] = (1, lambda own: meta(methods, own, kept, state.trajectory))
    return {name: times * _alone(work, learner) for name, (times, work) in parts.items()}


def _alone(work: Callable[[Any], Any], learner: Any) -> float:
    """Seconds of a program, which may take the memory of the learner that it is given."""
    seconds = []
    for _ in range(4):
        own = jax.block_until_ready(jax.tree.map(jnp.copy, learner))
        began = time.perf_counter()
        jax.block_until_ready(work(own))
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds[1:])
