"""Collecting pieces of a stream of episodes: actors live on from one update to the next.

A step in which an actor's last episode is over starts a new one and is not valid (`Trajectory` says how a piece looks).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from paircredit.envs.protocol import Environment, EnvSpec
from paircredit.methods.protocol import Method
from paircredit.networks.perception import prepare
from paircredit.training.rollout import act, choose, fresh_carry, steps_per_iteration
from paircredit.types import PyTree, TimeStep, Trajectory, episode_numbers


class Actors(eqx.Module):
    """Where B actors are in their episodes; members add a leading axis.

    Attributes:
        state: of the environments.
        observation: what the actors see.
        legal: what they may do.
        carry: what they remember.
        over: their episode has ended, and the next step starts another one.
        paid: so far in the episode, as players count it.
        last_return: of the last episode that ended; 0 before.
        ended: episodes that have ended.
    """

    state: PyTree
    observation: PyTree
    legal: Bool[Array, "*members B A"]
    carry: PyTree
    over: Bool[Array, "*members B"]
    paid: Float[Array, "*members B"]
    last_return: Float[Array, "*members B"]
    ended: Float[Array, "*members B"]


class Outcome(NamedTuple):
    """What a step of B actors led to, as far as a piece keeps it; members add a leading axis."""

    rewards: Float[Array, "*members B"]
    terminated: Bool[Array, "*members B"]
    truncated: Bool[Array, "*members B"]


class Recorded(NamedTuple):
    """One step of B actors, as a piece keeps it: the actors before it, what they did, and what it led to."""

    observation: PyTree
    legal: Bool[Array, "*members B A"]
    over: Bool[Array, "*members B"]
    actions: Int[Array, "*members B"]
    outcome: Outcome


def start_actors(method: Method, learner: Any, env: Environment, key: Key[Array, ""]) -> Actors:
    """`method.episodes` actors, each at the beginning of an episode."""
    return actors_at(method, learner, *jax.vmap(env.reset)(jax.random.split(key, method.episodes)))


def actors_at(method: Method, learner: Any, state: PyTree, first: TimeStep) -> Actors:
    """Actors that have just seen the first time step of an episode."""
    nothing = jnp.zeros_like(first.reward)
    return Actors(
        state=state,
        observation=first.observation,
        legal=first.legal,
        carry=fresh_carry(method, learner, method.episodes),
        over=jnp.zeros((method.episodes,), dtype=bool),
        paid=nothing,
        last_return=nothing,
        ended=nothing,
    )


def collect_piece(
    method: Method, learner: Any, env: Environment, actors: Actors, key: Key[Array, ""]
) -> tuple[Trajectory, Actors]:
    """The next `env.spec.horizon` steps of every actor with the learner's policy.

    Whatever does not depend on what happens is made before the loop over time: noise, derived matrices, and the episode
    that would begin at each step.
    """
    spec, count = env.spec, method.episodes
    learner = prepare(learner)
    noise, chance = noise_of_actions(key, spec, count)
    step_keys, reset_keys = (jax.random.split(own, (spec.horizon, count)) for own in jax.random.split(chance))
    beginnings = jax.vmap(jax.vmap(env.reset))(reset_keys)

    def step(before: Actors, draws: tuple) -> tuple[Actors, Recorded]:
        gumbel, keys, beginning = draws
        actions, carry = act(method, learner, before.carry, before.observation, before.legal, gumbel)
        stepped = jax.vmap(env.step)(keys, before.state, actions)
        state, after = choose(before.over, beginning, stepped)
        following, outcome = follow(method, learner, before, actions, carry, state, after)
        return following, recorded(before, actions, outcome)

    later, steps = jax.lax.scan(step, actors, (noise, step_keys, beginnings), unroll=steps_per_iteration())
    return piece_of(steps, later), later


def noise_of_actions(key: Key[Array, ""], spec: EnvSpec, count: int) -> tuple[Float[Array, "T B A"], Key[Array, ""]]:
    """What decides the actions of a piece, drawn at once, and a key for the rest of its chance."""
    action_key, rest = jax.random.split(key)
    return jax.random.gumbel(action_key, (spec.horizon, count, spec.num_actions), dtype=float), rest


def follow(
    method: Method,
    learner: Any,
    before: Actors,
    actions: Int[Array, " B"],
    carry: PyTree,
    state: PyTree,
    after: TimeStep,
) -> tuple[Actors, Outcome]:
    """The actors after a step, and what is kept of what it led to.

    Args:
        method: whose actors they are.
        learner: with whose policy they acted.
        before: the actors as they acted.
        actions: what they did.
        carry: what they remember of it.
        state: of the environments afterwards; of new episodes where the old ones were over.
        after: what the environments said.
    """
    after = _nothing_happened(after, before.over)
    over = after.terminated | after.truncated if after.over is None else after.over
    paid = before.paid + (after.reward if after.score is None else after.score)
    forgotten = fresh_carry(method, learner, method.episodes)
    following = Actors(
        state=state,
        observation=after.observation,
        legal=after.legal,
        carry=choose(before.over, forgotten, jax.vmap(method.remember)(carry, actions, after.reward)),
        over=over,
        paid=jnp.where(over, 0.0, paid),
        last_return=jnp.where(over, paid, before.last_return),
        ended=before.ended + over.astype(before.ended.dtype),
    )
    return following, Outcome(after.reward, after.terminated, after.truncated)


def recorded(before: Actors, actions: Int[Array, "*members B"], outcome: Outcome) -> Recorded:
    """A step of these actors."""
    return Recorded(before.observation, before.legal, before.over, actions, outcome)


def piece_of(steps: Recorded, later: Actors) -> Trajectory:
    """Steps, stacked over time, as a batch of pieces; `later` are the actors behind them."""
    outcome, valid = steps.outcome, ~steps.over
    ends = outcome.terminated | outcome.truncated
    horizon = valid.shape[0]
    last = (jnp.arange(horizon) == horizon - 1)[:, None]
    piece = Trajectory(
        observations=jax.tree.map(lambda x, end: jnp.concatenate([x, end[None]]), steps.observation, later.observation),
        legal=steps.legal,
        actions=steps.actions,
        rewards=outcome.rewards,
        terminated=outcome.terminated,
        truncated=outcome.truncated | (last & valid & ~outcome.terminated),
        valid=valid,
        episode=episode_numbers(ends.T).T,
    )
    return jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), piece)


def summary_of(actors: Actors) -> dict[str, Array]:
    """The mean return of the actors' last episodes, as far as they have ended one, and how many have ended so far."""
    some = (actors.ended > 0).astype(actors.paid.dtype)
    mean = jnp.sum(actors.last_return * some) / jnp.maximum(jnp.sum(some), 1.0)
    return {"episode_return": mean, "ended_episodes": jnp.sum(actors.ended)}


def _nothing_happened(after: TimeStep, where: Bool[Array, " B"]) -> TimeStep:
    """A time step that pays nothing and ends nothing, for actors that have only started again."""
    return TimeStep(
        observation=after.observation,
        legal=after.legal,
        reward=jnp.where(where, 0.0, after.reward),
        terminated=after.terminated & ~where,
        truncated=after.truncated & ~where,
        over=None if after.over is None else after.over & ~where,
        score=None if after.score is None else jnp.where(where, 0.0, after.score),
    )
