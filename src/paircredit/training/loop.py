"""The loop. One, for every method, with a member axis.

An iteration is a pure function of the state; a chunk is a scan of iterations, mapped over members (seed × setting ×
variant) and compiled once. What leaves the device are the summaries of a chunk, of fixed shape: nothing grows with
time.

Two protocols. *Online*, as agents live: learn from the last batch, collect the next, let it judge the weights.
*Reset*, as the paper looks at weights: forget policy and values, make K inner updates, and follow the gradient of all
K outer losses back through all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from paircredit.envs.protocol import Environment
from paircredit.metagradient import global_norm, unrolled_metagradient
from paircredit.methods.agent import Learner, meta_learn
from paircredit.methods.policy_gradient import mean_over_valid
from paircredit.methods.protocol import Method
from paircredit.parts import part
from paircredit.training.pieces import collect_piece, start_actors, summary_of
from paircredit.training.rollout import collect_episodes
from paircredit.types import PyTree, Trajectory

Protocol = Literal["online", "reset"]
Summary = dict[str, Array]
Probe = Callable[[Any, Any, Environment], Summary]
"""(method, learner, environment) → scalars to record beside the loop's own."""


class LoopState(eqx.Module):
    """All that changes while training, and all that is needed to go on.

    Attributes:
        learner: the method's parameters and optimiser states.
        trajectory: the batch that the next update learns from (online), or () (reset).
        key: of everything that is still to be drawn.
        actors: where rollouts are pieces, the actors that go on with the next one.
    """

    learner: PyTree
    trajectory: PyTree
    key: Key[Array, "*members"]
    actors: PyTree = ()


class Plan(eqx.Module):
    """What a compiled chunk does; all of it static.

    Attributes:
        protocol: online or reset.
        updates: iterations per chunk (outer updates under the reset protocol).
        inner_updates: inner updates per reset.
        learn_weights: whether the outer loop runs; off, the weights stay as they are.
        probe: extra scalars to record.
    """

    protocol: Protocol = eqx.field(static=True, default="online")
    updates: int = eqx.field(static=True, default=100)
    inner_updates: int = eqx.field(static=True, default=16)
    learn_weights: bool = eqx.field(static=True, default=True)
    probe: Probe | None = eqx.field(static=True, default=None)


def learns_weights(method: Method) -> bool:
    """Whether the method has an outer loop."""
    return method.learns_weights


def start(method: Method, env: Environment, plan: Plan, key: Key[Array, ""], weights: PyTree = None) -> LoopState:
    """A fresh learner (with the given weight function, if any) and, online, its first batch."""
    init_key, rollout_key, key = jax.random.split(key, 3)
    learner = fresh_learner(method, env, init_key, weights)
    if plan.protocol == "reset":
        return LoopState(learner, (), key)
    if env.spec.whole_episodes:
        return LoopState(learner, collect_episodes(method, learner, env, rollout_key), key)
    actor_key, rollout_key = jax.random.split(rollout_key)
    actors = start_actors(method, learner, env, actor_key)
    trajectory, actors = collect_piece(method, learner, env, actors, rollout_key)
    return LoopState(learner, trajectory, key, actors)


def fresh_learner(method: Method, env: Environment, key: Key[Array, ""], weights: PyTree = None) -> Any:
    """A learner at its beginning, with the given weight function, if any."""
    learner = method.init(key, env)
    return learner if weights is None else replace(learner, weights=replace(learner.weights, parameters=weights))


def online_iteration(method: Any, env: Environment, plan: Plan, state: LoopState) -> tuple[LoopState, Summary]:
    """learn(τ_k) → collect τ_{k+1} → meta-learn from it."""
    key, rollout_key = jax.random.split(state.key)
    summary = summarise(method, env, plan, state)
    with part("learn"):
        learner, kept = method.learn(state.learner, state.trajectory)
    with part("rollout"):
        actors = state.actors
        if env.spec.whole_episodes:
            trajectory = collect_episodes(method, learner, env, rollout_key)
        else:
            trajectory, actors = collect_piece(method, learner, env, actors, rollout_key)
    if plan.learn_weights and learns_weights(method):
        with part("meta"):
            learner = meta_learn(method, learner, kept, trajectory)
    return LoopState(learner, trajectory, key, actors), summary


def summarise(method: Any, env: Environment, plan: Plan, state: LoopState) -> Summary:
    """What is recorded of an update, before it is made."""
    whole = env.spec.whole_episodes
    summary = {"episode_return": mean_return(state.trajectory)} if whole else summary_of(state.actors)
    if hasattr(env, "summarise"):
        summary |= env.summarise(state.trajectory)
    if plan.probe is not None:
        summary |= plan.probe(method, state.learner, env)
    return summary


def reset_iteration(method: Any, env: Environment, plan: Plan, state: LoopState) -> tuple[LoopState, Summary]:
    """Forget θ and the value functions, make K inner updates, then one outer update through all of them.

    The return that is recorded is that of θ_K; the learner that comes back has made one update more.
    """
    init_key, inner_key, key = jax.random.split(state.key, 3)
    fresh = method.init(init_key, env)
    if isinstance(fresh, Learner) or learns_weights(method):
        fresh = replace(fresh, weights=state.learner.weights)
    meta = plan.learn_weights and learns_weights(method)

    learner, kept, judged, returns = inner_updates(method, env, fresh, inner_key, plan.inner_updates, judge=meta)
    summary = {"episode_return": returns[-1]}
    if plan.probe is not None:
        summary |= plan.probe(method, learner, env)
    if meta:
        gradient, loss = unrolled_metagradient(
            method.problem(),
            learner.weights.parameters,
            fresh.policy.parameters,
            fresh.policy.state,
            kept,
            judged,
        )
        learner = method.improve_weights(learner, gradient)
        summary |= {"outer_loss": loss, "metagradient_norm": global_norm(gradient)}
    return LoopState(learner, (), key), summary


def inner_updates(
    method: Any, env: Environment, learner: Any, key: Key[Array, ""], count: int, *, judge: bool = True
) -> tuple[Any, PyTree, PyTree, Float[Array, " count_plus_1"]]:
    """Some inner updates in a row, with all that a metagradient through them needs.

    Batch i is collected with θ_i, judges update i−1 and feeds update i. Of K+1 batches the first only feeds and the
    last only judges; its update is thrown away, which is cheaper than a second copy of the rollout in the program.

    Args:
        method: what learns.
        env: where.
        learner: θ_0.
        key: of the batches.
        count: the number K of updates.
        judge: whether outer data are wanted.

    Returns:
        The learner behind the last batch; inner and outer data of the K updates, stacked; mean returns of the batches.
    """

    def update(before: Any, batch_key: Array) -> tuple[Any, tuple]:
        trajectory = collect_episodes(method, before, env, batch_key)
        judged = method.outer_data(before, trajectory) if judge else ()
        after, kept = method.learn(before, trajectory)
        return after, (kept, judged, mean_return(trajectory))

    learner, (kept, judged, returns) = jax.lax.scan(update, learner, jax.random.split(key, count + 1))
    return learner, jax.tree.map(lambda x: x[:-1], kept), jax.tree.map(lambda x: x[1:], judged), returns


def mean_return(trajectory: Trajectory) -> Float[Array, ""]:
    """The mean over a batch of the sum of rewards of each episode."""
    steps = jnp.sum(trajectory.valid, axis=-1).astype(trajectory.rewards.dtype)
    return mean_over_valid(trajectory.rewards, trajectory.valid) * jnp.mean(steps)


def start_members(
    methods: PyTree, envs: PyTree, plan: Plan, keys: Key[Array, " M"], weights: PyTree = None
) -> LoopState:
    """`start` for every member. Compiled by itself: inside a `jit` of your own, map `start`.

    Args:
        methods: the members' hyperparameters, stacked.
        envs: the members' environments, stacked.
        plan: what is going to be done.
        keys: one per member.
        weights: weight functions to start from, stacked, or None.
    """
    state: LoopState = start_program()(methods, envs, plan, keys, weights)
    return state


def run_chunk(methods: PyTree, envs: PyTree, plan: Plan, state: LoopState) -> tuple[LoopState, Summary]:
    """`plan.updates` iterations of every member.

    Args:
        methods: the members' hyperparameters, stacked.
        envs: the members' environments, stacked.
        plan: what to do.
        state: the members' states, stacked; its memory is taken over.

    Returns:
        The states afterwards, and summaries of shape [M, updates].
    """
    result: tuple[LoopState, Summary] = chunk_program()(methods, envs, plan, state)
    return result


def start_program() -> Any:
    """The compiled `start_members`; one executable per structure of its arguments."""
    return _start_program(**compiler_options())


def chunk_program() -> Any:
    """The compiled `run_chunk`; one executable per structure of its arguments."""
    return _chunk_program(**compiler_options())


@cache
def _start_program(**options: int) -> Any:
    def members(methods: PyTree, envs: PyTree, plan: Plan, keys: Array, weights: PyTree) -> LoopState:
        return jax.vmap(lambda m, e, k, w: start(m, e, plan, k, w))(methods, envs, keys, weights)

    return jax.jit(members, static_argnames=("plan",), compiler_options=options)


@cache
def _chunk_program(**options: int) -> Any:
    return jax.jit(chunk, static_argnames=("plan",), donate_argnames=("state",), compiler_options=options)


def chunk(methods: PyTree, envs: PyTree, plan: Plan, state: LoopState) -> tuple[LoopState, Summary]:
    """What `run_chunk` compiles."""
    iteration = online_iteration if plan.protocol == "online" else reset_iteration

    def member(method: Method, env: Environment, own: LoopState) -> tuple[LoopState, Summary]:
        def step(carry: LoopState, _: Int[Array, ""]) -> tuple[LoopState, Summary]:
            return iteration(method, env, plan, carry)

        return jax.lax.scan(step, own, jnp.arange(plan.updates))

    return jax.vmap(member)(methods, envs, state)


def compiler_options() -> dict[str, int]:
    """On a CPU, less time in LLVM: a third off the compilation, nothing lost at run time (docs/performance.md)."""
    return {"xla_backend_optimization_level": 1} if jax.default_backend() == "cpu" else {}
