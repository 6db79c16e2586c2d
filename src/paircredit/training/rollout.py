"""Collecting episodes on the device."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from paircredit.envs.protocol import Environment
from paircredit.methods.policy_gradient import ILLEGAL_LOGIT
from paircredit.methods.protocol import Method
from paircredit.networks.perception import prepare
from paircredit.types import PyTree, Trajectory


def collect_episodes(method: Method, learner: Any, env: Environment, key: Key[Array, ""]) -> Trajectory:
    """`method.episodes` whole episodes with the learner's policy, padded to the environment's horizon.

    The noise that picks the actions is drawn before the loop over time, in one call of the generator and not in one
    per step; matrices that a network derives from its parameters are made before the loop, too.
    """
    spec, count = env.spec, method.episodes
    learner = prepare(learner)
    reset_key, action_key, step_key = jax.random.split(key, 3)
    noise = jax.random.gumbel(action_key, (spec.horizon, count, spec.num_actions), dtype=float)
    step_keys = jax.random.split(step_key, (spec.horizon, count))
    state, first = jax.vmap(env.reset)(jax.random.split(reset_key, count))
    carry = fresh_carry(method, learner, count)

    def step(before: tuple, draws: tuple) -> tuple[tuple, tuple]:
        state, observation, legal, carry, running = before
        gumbel, keys = draws
        actions, carry = act(method, learner, carry, observation, legal, gumbel)
        state, after = jax.vmap(env.step)(keys, state, actions)
        carry = jax.vmap(method.remember)(carry, actions, after.reward)
        # Behind the end the final observation stays, so that `observations[n]` of an episode of n steps is the final
        # one.
        observation = choose(running, after.observation, observation)
        following = choose(running, after.legal, legal)
        recorded = (
            observation,
            following,
            actions,
            jnp.where(running, after.reward, 0.0),
            after.terminated & running,
            after.truncated & running,
            running,
        )
        running = running & ~after.terminated & ~after.truncated
        return (state, observation, following, carry, running), recorded

    start = (state, first.observation, first.legal, carry, jnp.ones((count,), dtype=bool))
    _, steps = jax.lax.scan(step, start, (noise, step_keys), unroll=steps_per_iteration())
    observations, legal, actions, rewards, terminated, truncated, valid = steps
    batch = Trajectory(
        observations=_with_first(first.observation, observations),
        legal=_with_first(first.legal, legal)[:-1],
        actions=actions,
        rewards=rewards,
        terminated=terminated,
        truncated=truncated,
        valid=valid,
    )
    return jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), batch)


def steps_per_iteration() -> int:
    """Of a compiled loop over time: several on a GPU, where copying the loop's state costs as much as a step's work."""
    return 4 if jax.default_backend() == "gpu" else 1


def fresh_carry(method: Method, learner: Any, count: int) -> PyTree:
    """What so many agents remember before their first step."""
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


def _with_first(first: PyTree, following: PyTree) -> PyTree:
    return jax.tree.map(lambda x, rest: jnp.concatenate([x[None], rest]), first, following)


def choose(mask: Array, yes: PyTree, no: PyTree) -> PyTree:
    """By a mask over the first axis, from two trees."""

    def one(a: Array, b: Array) -> Array:
        return jnp.where(mask.reshape(mask.shape + (1,) * (a.ndim - 1)), a, b)

    return jax.tree.map(one, yes, no)
