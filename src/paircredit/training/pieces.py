"""Collecting pieces of a stream of episodes: actors live on from one update to the next.

A step in which an actor's last episode is over starts a new one and is not valid (`Trajectory` says how a piece looks).
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from paircredit.envs.protocol import Environment
from paircredit.methods.protocol import Method
from paircredit.networks.prepare import prepare
from paircredit.training.rollout import act, choose, fresh_carry
from paircredit.types import PyTree, TimeStep, Trajectory, episode_numbers


class Actors(eqx.Module):
    """Where B actors are in their episodes.

    Attributes:
        state: of the environments.
        observation: what the actors see.
        legal: what they may do.
        carry: what they remember.
        over: their episode has ended, and the next step starts another one.
        paid: so far in the episode.
        last_return: of the last episode that ended; 0 before.
        ended: episodes that have ended.
    """

    state: PyTree
    observation: PyTree
    legal: Bool[Array, "B A"]
    carry: PyTree
    over: Bool[Array, " B"]
    paid: Float[Array, " B"]
    last_return: Float[Array, " B"]
    ended: Float[Array, " B"]


def start_actors(method: Method, learner: Any, env: Environment, key: Key[Array, ""]) -> Actors:
    """`method.episodes` actors, each at the beginning of an episode."""
    count = method.episodes
    state, first = jax.vmap(env.reset)(jax.random.split(key, count))
    nothing = jnp.zeros_like(first.reward)
    return Actors(
        state=state,
        observation=first.observation,
        legal=first.legal,
        carry=fresh_carry(method, learner, count),
        over=jnp.zeros((count,), dtype=bool),
        paid=nothing,
        last_return=nothing,
        ended=nothing,
    )


def collect_piece(
    method: Method, learner: Any, env: Environment, actors: Actors, key: Key[Array, ""]
) -> tuple[Trajectory, Actors]:
    """The next `env.spec.horizon` steps of every actor with the learner's policy."""
    spec, count = env.spec, method.episodes
    learner = prepare(learner)
    action_key, step_key, reset_key = jax.random.split(key, 3)
    noise = jax.random.gumbel(action_key, (spec.horizon, count, spec.num_actions), dtype=float)
    step_keys, reset_keys = (jax.random.split(own, (spec.horizon, count)) for own in (step_key, reset_key))
    forgotten = fresh_carry(method, learner, count)

    def step(before: Actors, draws: tuple) -> tuple[Actors, tuple]:
        gumbel, keys, keys_of_resets = draws
        actions, carry = act(method, learner, before.carry, before.observation, before.legal, gumbel)
        stepped = jax.vmap(env.step)(keys, before.state, actions)
        state, after = choose(before.over, jax.vmap(env.reset)(keys_of_resets), stepped)
        after = _nothing_happened(after, before.over)
        over = after.terminated | after.truncated
        paid = before.paid + after.reward
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
        return following, (before.observation, before.legal, actions, after, ~before.over)

    later, (observations, legal, actions, after, valid) = jax.lax.scan(step, actors, (noise, step_keys, reset_keys))
    ends = after.terminated | after.truncated
    last = (jnp.arange(spec.horizon) == spec.horizon - 1)[:, None]
    piece = Trajectory(
        observations=jax.tree.map(lambda x, end: jnp.concatenate([x, end[None]]), observations, later.observation),
        legal=legal,
        actions=actions,
        rewards=after.reward,
        terminated=after.terminated,
        truncated=after.truncated | (last & valid & ~after.terminated),
        valid=valid,
        episode=episode_numbers(ends.T).T,
    )
    return jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), piece), later


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
    )
