"""Pairwise credit: every decision has its own weight for every later reward (PWR) or TD error (PWTD).

`weights[t, k]` is the paper's f(S_t, S_{k+1}, k+1−t): what the action at step t gets of what arrives at step k+1.
Entries with k < t would be credit for the past; they are ignored, whatever they hold.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from paircredit.estimators.returns import td_errors
from paircredit.estimators.shapes import expect_shape, trajectory_length, valid_steps


def pairwise_sum(
    weights: Float[Array, "T T"],
    signal: Float[Array, " T"],
    valid: Bool[Array, " T"] | None = None,
    episode: Int[Array, " T"] | None = None,
) -> Float[Array, " T"]:
    """Σ_{k=t..T−1} weights[t, k] · signal[k] for every t.

    Args:
        weights: one weight per pair; entries below the diagonal are ignored.
        signal: `signal[k]` arrives with the transition k → k+1 (a reward or a TD error).
        valid: padding mask; pairs with a padded step add nothing, padded rows give 0.
        episode: a number per step; pairs of steps with different ones add nothing.
    """
    length = trajectory_length("signal", signal)
    expect_shape("weights (one row and one column per step of the signal)", weights, (length, length))
    mask = valid_steps(valid, length)
    counted = jnp.triu(jnp.ones((length, length), dtype=bool)) & mask[:, None] & mask[None, :]
    if episode is not None:
        expect_shape("episode", episode, (length,))
        counted &= episode[:, None] == episode[None, :]
    return jnp.matmul(
        jnp.where(counted, weights, 0.0),
        jnp.where(mask, signal, 0.0),
        precision=jax.lax.Precision.HIGHEST,
    )


def pwtd(
    weights: Float[Array, "T T"],
    rewards: Float[Array, " T"],
    values: Float[Array, " T_plus_1"],
    discounts: Float[Array, " T"] | float,
    valid: Bool[Array, " T"] | None = None,
    episode: Int[Array, " T"] | None = None,
) -> Float[Array, " T"]:
    """Ψ^PWTD_t = Σ_{k=t+1..T} f(S_t, S_k, k−t) δ_k, the pairwise weighted sum of TD errors.

    With f = (γλ)^{k−t−1} this is the λ-estimator (`lambda_advantages`).

    Args:
        weights: one weight per pair.
        rewards: `rewards[k]` is R_{k+1}.
        values: T+1 values of the regular return.
        discounts: γ, or one discount per step (0 where the episode terminated).
        valid: padding mask.
        episode: a number per step; pairs of steps with different ones add nothing.
    """
    return pairwise_sum(weights, td_errors(rewards, values, discounts, valid), valid, episode)


def pwr(
    weights: Float[Array, "T T"],
    rewards: Float[Array, " T"],
    values: Float[Array, " _"],
    valid: Bool[Array, " T"] | None = None,
    episode: Int[Array, " T"] | None = None,
) -> Float[Array, " T"]:
    """Ψ^PWR_t = Σ_{k=t+1..T} f(S_t, S_k, k−t) R_k − v^PWR(S_t), the pairwise weighted sum of rewards.

    With f = γ^{k−t−1} and the regular value function this is the Monte Carlo estimator.

    Args:
        weights: one weight per pair.
        rewards: `rewards[k]` is R_{k+1}.
        values: the baseline, values of the *weighted* return: T entries, or T+1 of which the last is not used
            (weighted returns cannot be bootstrapped).
        valid: padding mask.
        episode: a number per step; pairs of steps with different ones add nothing.
    """
    length = trajectory_length("rewards", rewards)
    if values.shape != (length,):
        expect_shape("values (as many entries as rewards, or one more)", values, (length + 1,))
    baseline = jnp.where(valid_steps(valid, length), values[:length], 0.0)
    return pairwise_sum(weights, rewards, valid, episode) - baseline
