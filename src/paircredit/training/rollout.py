"""Collecting episodes on the device."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Key

from paircredit.envs.protocol import Environment
from paircredit.methods.policy_gradient import legal_log_probs
from paircredit.methods.protocol import Method
from paircredit.types import PyTree, TimeStep, Trajectory


def collect_episodes(method: Method, learner: Any, env: Environment, key: Key[Array, ""]) -> Trajectory:
    """`method.episodes` whole episodes with the learner's policy, padded to the environment's horizon.

    The noise that picks the actions is drawn before the loop over time, in one call of the generator and not in one
    per step.
    """
    spec, count = env.spec, method.episodes
    reset_key, action_key, step_key = jax.random.split(key, 3)
    noise = jax.random.gumbel(action_key, (spec.horizon, count, spec.num_actions), dtype=float)
    step_keys = jax.random.split(step_key, (spec.horizon, count))
    state, first = jax.vmap(env.reset)(jax.random.split(reset_key, count))
    carry = jax.vmap(lambda _: method.initial_carry(learner))(jnp.arange(count))

    def step(before: tuple, draws: tuple) -> tuple[tuple, Trajectory]:
        state, now, carry, running = before
        gumbel, keys = draws
        logits, carry = jax.vmap(lambda c, o: method.policy(learner, c, o))(carry, now.observation)
        actions = jnp.argmax(legal_log_probs(logits, now.legal) + gumbel, axis=-1)
        state, after = jax.vmap(env.step)(keys, state, actions)
        recorded = Trajectory(
            observations=now.observation,
            legal=now.legal,
            actions=actions,
            rewards=jnp.where(running, after.reward, 0.0),
            terminated=after.terminated & running,
            truncated=after.truncated & running,
            valid=running,
        )
        # Behind the end the final observation stays, so that `observations[n]` of an episode of n steps is the final
        # one.
        after = TimeStep(
            observation=_where(running, after.observation, now.observation),
            legal=_where(running, after.legal, now.legal),
            reward=after.reward,
            terminated=after.terminated,
            truncated=after.truncated,
        )
        return (state, after, carry, running & ~after.terminated & ~after.truncated), recorded

    start = (state, first, carry, jnp.ones((count,), dtype=bool))
    (_, last, _, _), steps = jax.lax.scan(step, start, (noise, step_keys))
    observations = jax.tree.map(
        lambda x, final: jnp.concatenate([x, final[None]]), steps.observations, last.observation
    )
    batch = Trajectory(
        observations,
        steps.legal,
        steps.actions,
        steps.rewards,
        steps.terminated,
        steps.truncated,
        steps.valid,
    )
    return jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), batch)


def _where(mask: Array, yes: PyTree, no: PyTree) -> PyTree:
    def choose(a: Array, b: Array) -> Array:
        return jnp.where(mask.reshape(mask.shape + (1,) * (a.ndim - 1)), a, b)

    return jax.tree.map(choose, yes, no)
