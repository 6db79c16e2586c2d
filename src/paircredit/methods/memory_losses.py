"""Losses of the reconstructive memory agent: sums over the steps of an episode, means over episodes (TVT, code)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from paircredit.methods.policy_gradient import legal_log_probs
from paircredit.networks.reconstructive_memory import PictureDecoder, ReconstructiveMemory
from paircredit.types import PyTree, Trajectory


@jax.custom_vjp
def clip_gradient(x: Float[Array, "*shape"], limit: float) -> Float[Array, "*shape"]:
    """The same numbers; every number of the gradient that flows back through it is cut to ± limit."""
    del limit
    return x


def _clip_forward(x: Array, limit: float | Array) -> tuple[Array, float | Array]:
    return x, limit


def _clip_backward(limit: float | Array, gradient: Array) -> tuple[Array, Array]:
    return jnp.clip(gradient, -limit, limit), jnp.zeros_like(limit)


clip_gradient.defvjp(_clip_forward, _clip_backward)


def sum_of_episode(x: Float[Array, "B T"], valid: Bool[Array, "B T"]) -> Float[Array, ""]:
    """The sum over the steps of an episode, averaged over episodes; on padding x may be anything."""
    return jnp.mean(jnp.sum(jnp.where(valid, x, 0.0), axis=-1))


def policy_loss(
    logits: Float[Array, "B T A"], trajectory: Trajectory, advantages: Float[Array, "B T"], entropy_cost: float
) -> Float[Array, ""]:
    """−Σ_t [Ψ_t log π(A_t) + β H(π_t)], the advantages held constant."""
    log_probs = legal_log_probs(logits, trajectory.legal)
    taken = jnp.take_along_axis(log_probs, trajectory.actions[..., None], axis=-1)[..., 0]
    entropy = -jnp.sum(jnp.where(trajectory.legal, jnp.exp(log_probs) * log_probs, 0.0), axis=-1)
    credited = jax.lax.stop_gradient(jnp.where(trajectory.valid, advantages, 0.0))
    return -sum_of_episode(credited * taken + entropy_cost * entropy, trajectory.valid)


def value_loss(
    values: Float[Array, "B T"], targets: Float[Array, "B T"], valid: Bool[Array, "B T"]
) -> Float[Array, ""]:
    """½ Σ_t (G_t − v_t)², the targets held constant."""
    errors = jnp.where(valid, jax.lax.stop_gradient(targets) - values, 0.0)
    return sum_of_episode(0.5 * jnp.square(errors), valid)


def reconstruction_loss(
    network: ReconstructiveMemory,
    codes: Float[Array, "B T W"],
    observations: PyTree,
    actions: Int[Array, "B T"],
    rewards: Float[Array, "B T"],
    valid: Bool[Array, "B T"],
    picture_cost: float,
) -> Float[Array, ""]:
    """Σ_t of what the codes say wrongly about the inputs of their steps.

    Cross-entropy of the picture (its mean over all numbers, times `picture_cost`) or of the numbered state (times 1),
    cross-entropy of the action before, half the squared error of the reward before.

    Args:
        network: has the decoders.
        codes: z of every step.
        observations: what was seen.
        actions: those before each step.
        rewards: those before each step.
        valid: padding mask.
        picture_cost: weight of a picture.
    """
    cost = picture_cost if isinstance(network.observation_decoder, PictureDecoder) else 1.0
    seen = jax.vmap(jax.vmap(network.observation_decoder.error))(codes, observations)
    of_actions = jax.nn.log_softmax(network.action_decoder(codes))
    done = -jnp.take_along_axis(of_actions, actions[..., None], axis=-1)[..., 0]
    paid = 0.5 * jnp.square(network.reward_decoder(codes)[..., 0] - rewards)
    return sum_of_episode(cost * seen + done + paid, valid)


def read_strength_loss(strengths: Float[Array, "B T H"], floor: float, valid: Bool[Array, "B T"]) -> Float[Array, ""]:
    """Σ_t Σ_h max(floor, strength): sharp reads must be worth it, reads below the floor cost all the same."""
    return sum_of_episode(jnp.sum(jnp.maximum(strengths, floor), axis=-1), valid)
