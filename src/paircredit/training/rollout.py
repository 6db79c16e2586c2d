"""Collecting on the device: whole episodes of fresh actors, or the next segment of a stream of episodes.

Both are the same scan over time. Actors of whole episodes stay where their episode ends, and what lies after it is
padding. Actors of segments live on from one update to the next: a step in which their last episode is over starts a new
one and is not valid (`Trajectory` says how a segment looks).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from paircredit.envs.protocol import Environment, EnvSpec
from paircredit.methods.loops import ILLEGAL_LOGIT
from paircredit.methods.rule import Method
from paircredit.networks.perception import prepare
from paircredit.types import PyTree, TimeStep, Trajectory, episode_numbers


class Actors(eqx.Module):
    """Where B actors are in their episodes; members add a leading axis.

    `carry` is what they remember. Where an episode is `over`, the next step starts another one, if they start again.
    Only actors that do so count returns, as players would (`last_return` is 0 until an episode has ended), and the
    episodes that have `ended`.
    """

    state: PyTree
    observation: PyTree
    legal: Bool[Array, "*members B A"]
    carry: PyTree
    over: Bool[Array, "*members B"]
    return_so_far: Float[Array, "*members B"] | None = None
    last_return: Float[Array, "*members B"] | None = None
    ended: Float[Array, "*members B"] | None = None

    @property
    def start_again(self) -> bool:
        return self.return_so_far is not None


class Outcome(NamedTuple):
    """What a step of B actors led to, as far as a trajectory keeps it; members add a leading axis."""

    rewards: Float[Array, "*members B"]
    terminated: Bool[Array, "*members B"]
    truncated: Bool[Array, "*members B"]


class Recorded(NamedTuple):
    """One step of B actors, as a trajectory keeps it: the actors before it, what they did, and what it led to."""

    observation: PyTree
    legal: Bool[Array, "*members B A"]
    over: Bool[Array, "*members B"]
    actions: Int[Array, "*members B"]
    outcome: Outcome


def collect_episodes(method: Method, learner: Any, env: Environment, key: Key[Array, ""]) -> Trajectory:
    """`method.episodes` whole episodes with the learner's policy, padded to the environment's horizon."""
    return collect(method, learner, env, (), key)[0]


def collect(
    method: Method, learner: Any, env: Environment, actors: PyTree, key: Key[Array, ""]
) -> tuple[Trajectory, PyTree]:
    """The next `env.spec.horizon` steps of every actor with the learner's policy.

    `actors` are those that go on, or () for `method.episodes` whole episodes of fresh ones. Returns the trajectories,
    and the actors that the next call goes on with; () again for whole episodes.

    Whatever does not depend on what happens is made before the loop over time: the noise that picks actions, matrices
    that a network derives from its parameters, and the episode that would begin at each step.
    """
    spec, count = env.spec, method.episodes
    learner = prepare(learner)
    if isinstance(actors, Actors):
        first = actors
        noise, chance = noise_of_actions(key, spec, count)
        step_keys, reset_keys = (jax.random.split(own, (spec.horizon, count)) for own in jax.random.split(chance))
        beginnings: PyTree = jax.vmap(jax.vmap(env.reset))(reset_keys)
    else:
        reset_key, action_key, step_key = jax.random.split(key, 3)
        noise = _gumbel(action_key, spec, count)
        step_keys = jax.random.split(step_key, (spec.horizon, count))
        first, beginnings = _fresh_actors(method, learner, env, reset_key), ()

    def step(before: Actors, draws: tuple) -> tuple[Actors, Recorded]:
        gumbel, keys, beginning = draws
        actions, carry = act(method, learner, before.carry, before.observation, before.legal, gumbel)
        state, after = jax.vmap(env.step)(keys, before.state, actions)
        if before.start_again:
            state, after = choose(before.over, beginning, (state, after))
        following, outcome = follow(method, learner, before, actions, carry, state, after)
        return following, recorded(before, actions, outcome)

    # On a GPU copying the state of a loop costs as much as a step's work.
    unroll = 4 if jax.default_backend() == "gpu" else 1
    later, steps = jax.lax.scan(step, first, (noise, step_keys, beginnings), unroll=unroll)
    return trajectory_of(steps, later), later if later.start_again else ()


def start_actors(method: Method, learner: Any, env: Environment, key: Key[Array, ""]) -> Actors:
    """`method.episodes` actors that start again, each at the beginning of an episode."""
    return that_start_again(_fresh_actors(method, learner, env, key))


def that_start_again(actors: Actors) -> Actors:
    """The same actors, which from now on start again after an end."""
    nothing = jnp.zeros(actors.over.shape, dtype=float)
    return Actors(actors.state, actors.observation, actors.legal, actors.carry, actors.over, nothing, nothing, nothing)


def _fresh_actors(method: Method, learner: Any, env: Environment, key: Key[Array, ""]) -> Actors:
    return actors_at(method, learner, *jax.vmap(env.reset)(jax.random.split(key, method.episodes)))


def actors_at(method: Method, learner: Any, state: PyTree, first: TimeStep) -> Actors:
    """Actors that have just seen the first time step of an episode."""
    carry = fresh_carry(method, learner, method.episodes)
    return Actors(state, first.observation, first.legal, carry, jnp.zeros((method.episodes,), dtype=bool))


def noise_of_actions(key: Key[Array, ""], spec: EnvSpec, count: int) -> tuple[Float[Array, "T B A"], Key[Array, ""]]:
    """What decides the actions of a segment, drawn at once, and a key for the rest of its chance."""
    action_key, rest = jax.random.split(key)
    return _gumbel(action_key, spec, count), rest


def _gumbel(key: Key[Array, ""], spec: EnvSpec, count: int) -> Float[Array, "T B A"]:
    """Noise for all steps: one call of the generator, and not one per step."""
    return jax.random.gumbel(key, (spec.horizon, count, spec.num_actions), dtype=float)


def fresh_carry(method: Method, learner: Any, count: int) -> PyTree:
    """What agents remember before their first step."""
    return jax.vmap(lambda _: method.initial_carry(learner))(jnp.arange(count))


def act(
    method: Method,
    learner: Any,
    carry: PyTree,
    observation: PyTree,
    legal: Bool[Array, "B A"],
    gumbel: Float[Array, "B A"],
) -> tuple[Int[Array, " B"], PyTree]:
    """Draw a legal action for each of a batch of agents, given the noise that decides; and what they remember."""
    logits, carry = jax.vmap(lambda c, o: method.policy(learner, c, o))(carry, observation)
    return jnp.argmax(jnp.where(legal, logits, ILLEGAL_LOGIT) + gumbel, axis=-1), carry


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

    `before` are the actors as they took the actions, `carry` is what they remember, and `state` and `after` are what
    the environments say afterwards; those of new episodes where the old ones were over.
    """
    after = _nothing_happened(after, before.over)
    carry = jax.vmap(method.remember)(carry, actions, after.reward)
    ends = after.terminated | after.truncated
    outcome = Outcome(after.reward, after.terminated, after.truncated)
    if before.return_so_far is None or before.last_return is None or before.ended is None:
        # The final observation stays, so that `observations[n]` of an episode of n steps is the final one.
        observation = choose(before.over, before.observation, after.observation)
        legal = choose(before.over, before.legal, after.legal)
        return Actors(state, observation, legal, carry, before.over | ends), outcome
    over = ends if after.over is None else after.over
    so_far = before.return_so_far + (after.reward if after.score is None else after.score)
    following = Actors(
        state=state,
        observation=after.observation,
        legal=after.legal,
        carry=choose(before.over, fresh_carry(method, learner, method.episodes), carry),
        over=over,
        return_so_far=jnp.where(over, 0.0, so_far),
        last_return=jnp.where(over, so_far, before.last_return),
        ended=before.ended + over.astype(before.ended.dtype),
    )
    return following, outcome


def recorded(before: Actors, actions: Int[Array, "*members B"], outcome: Outcome) -> Recorded:
    return Recorded(before.observation, before.legal, before.over, actions, outcome)


def trajectory_of(steps: Recorded, later: Actors) -> Trajectory:
    """Steps, stacked over time, as a batch; `later` are the actors after them."""
    outcome, valid = steps.outcome, ~steps.over
    truncated, episode = outcome.truncated, None
    if later.start_again:
        horizon = valid.shape[0]
        last = (jnp.arange(horizon) == horizon - 1)[:, None]
        truncated = outcome.truncated | (last & valid & ~outcome.terminated)
        episode = episode_numbers((outcome.terminated | outcome.truncated).T).T
    batch = Trajectory(
        observations=jax.tree.map(lambda x, end: jnp.concatenate([x, end[None]]), steps.observation, later.observation),
        legal=steps.legal,
        actions=steps.actions,
        rewards=outcome.rewards,
        terminated=outcome.terminated,
        truncated=truncated,
        valid=valid,
        episode=episode,
    )
    return jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), batch)


def summary_of(actors: Actors) -> dict[str, Array]:
    """The mean return of the actors' last episodes, as far as they have ended one, and how many have ended so far."""
    assert actors.last_return is not None and actors.ended is not None
    some = (actors.ended > 0).astype(actors.last_return.dtype)
    mean = jnp.sum(actors.last_return * some) / jnp.maximum(jnp.sum(some), 1.0)
    return {"episode_return": mean, "ended_episodes": jnp.sum(actors.ended)}


def _nothing_happened(after: TimeStep, where: Bool[Array, " B"]) -> TimeStep:
    """A time step that pays nothing and ends nothing, for actors whose episode was over."""
    return replace(
        after,
        reward=jnp.where(where, 0.0, after.reward),
        terminated=after.terminated & ~where,
        truncated=after.truncated & ~where,
        over=None if after.over is None else after.over & ~where,
        score=None if after.score is None else jnp.where(where, 0.0, after.score),
    )


def choose(mask: Array, yes: PyTree, no: PyTree) -> PyTree:
    """By a mask over the first axis, from two trees."""

    def one(a: Array, b: Array) -> Array:
        return jnp.where(mask.reshape(mask.shape + (1,) * (a.ndim - 1)), a, b)

    return jax.tree.map(one, yes, no)
