"""Driving the loop from the host: chunk after chunk, summaries to whoever wants them."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np

from paircredit.envs.hosted import HostedEnvironment
from paircredit.envs.protocol import EpisodesOnHost
from paircredit.errors import PaircreditError, refuse_unknown
from paircredit.methods.registry import method_name
from paircredit.training.hosted import HostedMembers
from paircredit.training.loop import LoopState, Plan, Protocol, start_program
from paircredit.training.members import (
    Placement,
    enough_memory,
    member_keys,
    place_members,
    refuse_too_large,
    stack_members,
)
from paircredit.types import PyTree

LARGE_POLICY = 2**20
"""Entries; larger policies stay on the device when they are looked at."""


class Chunk(NamedTuple):
    """What the host learns once per chunk.

    Attributes:
        first_update: number of updates before this chunk.
        summaries: one array [M, updates] per recorded scalar.
        state: the members' states after the chunk; still on the device.
    """

    first_update: int
    summaries: dict[str, np.ndarray]
    state: LoopState


def train(
    methods: Sequence[Any],
    envs: Sequence[Any],
    seeds: Sequence[int],
    plan: Plan,
    total_updates: int,
    *,
    weights: PyTree = None,
    on_chunk: Callable[[Chunk], None] | None = None,
    go_on: tuple[int, LoopState] | None = None,
) -> LoopState:
    """Train all members together, spread over this process's devices where their number divides the members.

    Args:
        methods: one per member, of the same structure.
        envs: one per member, of the same structure.
        seeds: one per member.
        plan: what a chunk does. Its `updates` should divide the total, or the rest is compiled separately.
        total_updates: the number of iterations in all.
        weights: weight functions to start from, stacked over members.
        on_chunk: called after every chunk.
        go_on: updates that were made before and the states after them, to continue an earlier training as if it had
            not stopped; the memory of the states is taken over.
    """
    done = 0 if go_on is None else go_on[0]
    _refuse_what_cannot_start(methods, envs, seeds, plan, total_updates, weights, done)
    with _place(methods, envs, plan) as place:
        stacked_methods, stacked_envs = place.put((stack_members(methods), stack_members(envs)))
        memory = functools.partial(enough_memory, len(seeds), methods[0].episodes, envs[0].spec.horizon)
        if go_on is None:
            keys, weights = place.put((member_keys(seeds), weights))
            with memory():
                state = place.start_members(stacked_methods, stacked_envs, plan, keys, weights)
        else:
            state = place.put(go_on[1])
        while done < total_updates:
            size = min(plan.updates, total_updates - done)
            chunk_plan = plan if size == plan.updates else dataclasses.replace(plan, updates=size)
            with memory():  # the results are waited for inside: what goes wrong on the device is told when one asks
                state, summaries = place.run_chunk(stacked_methods, stacked_envs, chunk_plan, state)
                fetched = {name: np.asarray(x) for name, x in jax.device_get(summaries).items()}
            _refuse_not_finite(fetched, done, seeds)
            _refuse_lost_learners(state.learner, done + size, seeds)
            if on_chunk is not None:
                on_chunk(Chunk(done, fetched, state))
            done += size
        return state


@contextlib.contextmanager
def _place(methods: Sequence[Any], envs: Sequence[Any], plan: Plan) -> Iterator[Placement]:
    """Where the members are trained, and by which programs."""
    if not isinstance(envs[0], HostedEnvironment):
        yield place_members(len(methods))
        return
    with HostedMembers(methods, envs[0], plan) as hosted:
        yield Placement(lambda tree: tree, hosted.start_members, hosted.run_chunk)


def states_like(
    methods: Sequence[Any], envs: Sequence[Any], seeds: Sequence[int], plan: Plan, weights: PyTree = None
) -> LoopState:
    """The structure, shapes and types of the members' states, without computing any; arguments as for `train`."""
    return start_program().eval_shape(stack_members(methods), stack_members(envs), plan, member_keys(seeds), weights)


def even_chunks(total_updates: int, most: int) -> int:
    """The largest chunk size up to `most` that divides the total, so that one program does it all.

    A total with no such divisor of at least a quarter of `most` gets chunks of `most` and a remainder.
    """
    largest = min(most, total_updates)
    return next((size for size in range(largest, max(most // 4, 1) - 1, -1) if total_updates % size == 0), largest)


def refuse_segments(methods: Sequence[Any], envs: Sequence[Any], protocol: str) -> None:
    """Refuse methods that need whole episodes where rollouts are segments of them."""
    for method, env in zip(methods, envs, strict=True):
        reason = method.whole_episodes
        if not reason and protocol == "reset":
            reason = "with resets every batch is collected afresh"
        if reason and not env.spec.whole_episodes:
            raise PaircreditError(
                f"{method_name(method)} needs whole episodes, but rollouts of {env.spec.name} are segments of "
                f"episodes: {reason}."
            )


def _refuse_what_cannot_start(
    methods: Sequence[Any],
    envs: Sequence[Any],
    seeds: Sequence[int],
    plan: Plan,
    total_updates: int,
    weights: PyTree,
    done: int,
) -> None:
    if not len(methods) == len(envs) == len(seeds):
        raise PaircreditError(
            f"There are {len(methods)} methods, {len(envs)} environments and {len(seeds)} seeds; "
            "each member needs one of each."
        )
    refuse_segments(methods, envs, plan.protocol)
    if plan.updates < 1 or total_updates < 0:
        raise PaircreditError(f"A chunk of {plan.updates} updates, {total_updates} in all, cannot be trained.")
    refuse_unknown("protocol", plan.protocol, get_args(Protocol))
    if not methods:
        raise PaircreditError("There is nobody to train: give at least one method, environment and seed.")
    _refuse_shared_episodes(envs, seeds)
    refuse_too_large(methods, envs[0])
    if any(leaf.shape[0] != len(seeds) for leaf in jax.tree.leaves(weights)):
        raise PaircreditError(f"The weights to start from need a leading axis of {len(seeds)}, one entry per member.")
    if done > total_updates:
        raise PaircreditError(f"A training of {total_updates} updates cannot go on after {done} of them.")
    if done % plan.updates and done != total_updates:
        raise PaircreditError(f"After {done} updates no chunk of {plan.updates} ends, so training cannot go on there.")


def _refuse_shared_episodes(envs: Sequence[Any], seeds: Sequence[int]) -> None:
    """Episodes on the host may be known by their seeds, and no two members can step the same one."""
    numbered = [
        (env.host_number, seed) for env, seed in zip(envs, seeds, strict=True) if isinstance(env, EpisodesOnHost)
    ]
    if len({(int(number), seed) for number, seed in numbered}) < len(numbered):
        raise PaircreditError(
            "Two members have the same dm_env adapter and the same seed, so that their episodes on the host would be "
            "one; make an adapter for each of them with dm_environment."
        )


def _refuse_lost_learners(learner: PyTree, done: int, seeds: Sequence[int]) -> None:
    """Small policies are looked at on the host, which saves compiling a program; large ones where they are."""
    leaves = jax.tree.leaves(learner.policy.parameters)
    if sum(leaf.size for leaf in leaves) > LARGE_POLICY:
        sound = np.asarray(_all_finite(leaves))
    else:
        sound = np.all(
            [np.isfinite(leaf).reshape(len(seeds), -1).all(axis=1) for leaf in jax.device_get(leaves)], axis=0
        )
    if not sound.all():
        raise PaircreditError(
            f"The policy of the member with seed {seeds[int(np.argmin(sound))]} is NaN or infinite after {done} "
            "updates; lower the learning rates."
        )


@jax.jit
def _all_finite(leaves: list[jax.Array]) -> jax.Array:
    return jnp.stack([jnp.isfinite(leaf).reshape(leaf.shape[0], -1).all(axis=1) for leaf in leaves]).all(axis=0)


def _refuse_not_finite(summaries: dict[str, np.ndarray], done: int, seeds: Sequence[int]) -> None:
    for name, values in summaries.items():
        bad = ~np.isfinite(values)
        if bad.any():
            member, update = (int(i) for i in np.argwhere(bad)[0])
            value = values[member, update]
            raise PaircreditError(
                f"{name} became {'NaN' if math.isnan(value) else 'infinite'} at update {done + update} of the "
                f"member with seed {seeds[member]}; look for NaN rewards in the environment or lower the "
                "learning rates."
            )
