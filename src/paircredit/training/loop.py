"""The loop. One, for every method, with a member axis.

An iteration is a pure function of the state; a chunk is a scan of iterations, mapped over members (seed × setting ×
variant) and compiled once. What leaves the device are the summaries of a chunk: nothing grows with time.

Two protocols. *Online*, as agents live: learn from the last batch, collect the next, let it evaluate the weights.
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

from paircredit.envs.protocol import Environment, Summarises
from paircredit.metagradient import unrolled_metagradient
from paircredit.metagradient.optimisers import global_norm
from paircredit.methods.agent import Learner, meta_learn
from paircredit.methods.loops import mean_over_valid, part
from paircredit.methods.rule import Method
from paircredit.training.rollout import collect, collect_episodes, start_actors, summary_of
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
        actors: where rollouts are segments, the actors that go on with the next one.
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


def start(method: Method, env: Environment, plan: Plan, key: Key[Array, ""], weights: PyTree = None) -> LoopState:
    """A fresh learner (with the given weight function, if any) and, online, its first batch."""
    learner, rollout_key, key = fresh_learner(method, env, key, weights)
    if plan.protocol == "reset":
        return LoopState(learner, (), key)
    actors: PyTree = ()
    if not env.spec.whole_episodes:
        actor_key, rollout_key = jax.random.split(rollout_key)
        actors = start_actors(method, learner, env, actor_key)
    trajectory, actors = collect(method, learner, env, actors, rollout_key)
    return LoopState(learner, trajectory, key, actors)


def online_iteration(method: Any, env: Environment, plan: Plan, state: LoopState) -> tuple[LoopState, Summary]:
    """learn(τ_k) → collect τ_{k+1} → meta-learn from it."""
    learner, kept, rollout_key, key, summary = learn(method, env, plan, state)
    with part("rollout"):
        trajectory, actors = collect(method, learner, env, state.actors, rollout_key)
    if improves_weights(method, plan):
        with part("meta"):
            learner = meta_learn(method, learner, kept, trajectory)
    return LoopState(learner, trajectory, key, actors), summary


# The steps of an online training, in their order. Where environments live on the host, the same functions are compiled
# apart from each other (`hosted.py`), with the collecting between them.


def fresh_learner(
    method: Method, env: Environment, key: Key[Array, ""], weights: PyTree = None
) -> tuple[Any, Key[Array, ""], Key[Array, ""]]:
    """A learner at its beginning (with the given weight function, if any), and keys: first rollout, rest."""
    init_key, rollout_key, key = jax.random.split(key, 3)
    learner = method.init(init_key, env)
    if weights is not None:
        learner = replace(learner, weights=replace(learner.weights, parameters=weights))
    return learner, rollout_key, key


def learn(
    method: Any, env: Environment, plan: Plan, state: LoopState
) -> tuple[Any, PyTree, Key[Array, ""], Key[Array, ""], Summary]:
    """The learner after the state's batch, what a metagradient needs, keys (next rollout, rest), and the summary."""
    key, rollout_key = jax.random.split(state.key)
    summary = summarise(method, env, plan, state)
    with part("learn"):
        learner, kept = method.learn(state.learner, state.trajectory)
    return learner, kept, rollout_key, key, summary


def improves_weights(method: Any, plan: Plan) -> bool:
    return plan.learn_weights and method.learns_weights


def summarise(method: Any, env: Environment, plan: Plan, state: LoopState) -> Summary:
    """What is recorded of an update, before it is made."""
    whole = env.spec.whole_episodes
    summary = {"episode_return": mean_return(state.trajectory)} if whole else summary_of(state.actors)
    if isinstance(env, Summarises):
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
    if isinstance(fresh, Learner) or method.learns_weights:
        fresh = replace(fresh, weights=state.learner.weights)
    meta = improves_weights(method, plan)
    learner, kept, evaluated, returns = inner_updates(method, env, fresh, inner_key, plan.inner_updates, evaluate=meta)
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
            evaluated,
        )
        learner = method.improve_weights(learner, gradient)
        summary |= {"outer_loss": loss, "metagradient_norm": global_norm(gradient)}
    return LoopState(learner, (), key), summary


def inner_updates(
    method: Any, env: Environment, learner: Any, key: Key[Array, ""], count: int, *, evaluate: bool = True
) -> tuple[Any, PyTree, PyTree, Float[Array, " count_plus_1"]]:
    """Some inner updates in a row, with all that a metagradient through them needs.

    Batch i is collected with θ_i, evaluates update i−1 and feeds update i. Of K+1 batches the first only feeds and the
    last only evaluates; its update is thrown away. Returns the learner after the last batch; inner and, if they are to
    `evaluate`, outer data of the K = `count` updates, stacked; mean returns of the batches.
    """

    def update(before: Any, batch_key: Array) -> tuple[Any, tuple]:
        trajectory = collect_episodes(method, before, env, batch_key)
        evaluated = method.outer_data(before, trajectory) if evaluate else ()
        after, kept = method.learn(before, trajectory)
        return after, (kept, evaluated, mean_return(trajectory))

    learner, (kept, evaluated, returns) = jax.lax.scan(update, learner, jax.random.split(key, count + 1))
    return learner, jax.tree.map(lambda x: x[:-1], kept), jax.tree.map(lambda x: x[1:], evaluated), returns


def mean_return(trajectory: Trajectory) -> Float[Array, ""]:
    """The mean over a batch of the sum of rewards of each episode."""
    steps = jnp.sum(trajectory.valid, axis=-1).astype(trajectory.rewards.dtype)
    return mean_over_valid(trajectory.rewards, trajectory.valid) * jnp.mean(steps)


def start_members(
    methods: PyTree, envs: PyTree, plan: Plan, keys: Key[Array, " M"], weights: PyTree = None
) -> LoopState:
    """`start` for every member, all arguments stacked. Compiled by itself: inside a `jit` of your own, map `start`."""
    return start_program()(methods, envs, plan, keys, weights)


def run_chunk(methods: PyTree, envs: PyTree, plan: Plan, state: LoopState) -> tuple[LoopState, Summary]:
    """`plan.updates` iterations of every member, all arguments stacked; the memory of the state is taken over.

    Returns the states afterwards, and summaries of shape [M, updates].
    """
    return chunk_program()(methods, envs, plan, state)


def start_program() -> Any:
    """The compiled `start_members`; one executable per structure of its arguments."""
    return _compiled(_start, **compiler_options())


def chunk_program() -> Any:
    """The compiled `run_chunk`; one executable per structure of its arguments."""
    return _compiled(chunk, "state", **compiler_options())


@cache
def _compiled(program: Callable[..., Any], *taken_over: str, **options: int) -> Any:
    """A program over members, once per way to compile it; the memory of some arguments becomes that of the results."""
    return jax.jit(program, static_argnames=("plan",), donate_argnames=taken_over, compiler_options=options)


def _start(methods: PyTree, envs: PyTree, plan: Plan, keys: Array, weights: PyTree) -> LoopState:
    return jax.vmap(lambda m, e, k, w: start(m, e, plan, k, w))(methods, envs, keys, weights)


def chunk(methods: PyTree, envs: PyTree, plan: Plan, state: LoopState) -> tuple[LoopState, Summary]:
    iteration = online_iteration if plan.protocol == "online" else reset_iteration

    def member(method: Method, env: Environment, own: LoopState) -> tuple[LoopState, Summary]:
        def step(carry: LoopState, _: Int[Array, ""]) -> tuple[LoopState, Summary]:
            return iteration(method, env, plan, carry)

        return jax.lax.scan(step, own, jnp.arange(plan.updates))

    return jax.vmap(member)(methods, envs, state)


def compiler_options() -> dict[str, int]:
    """On a CPU, less time in LLVM: a third off the compilation, nothing lost at run time (docs/performance.md)."""
    return {"xla_backend_optimization_level": 1} if jax.default_backend() == "cpu" else {}
