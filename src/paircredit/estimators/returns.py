"""Classical credit: discounted returns, TD errors, the λ-estimator, and standardised advantages.

One trajectory at a time; batch with `jax.vmap`. Throughout, `rewards[k]` is R_{k+1}, `values[k]` is v(S_k) with
T+1 entries, `discounts[k]` multiplies what follows S_{k+1} (γ, or 0 where the episode terminated at step k+1), and
`valid` marks the steps that belong to the episode. Padding is never read: it may hold NaN.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from paircredit.estimators.shapes import expect_shape, per_step, trajectory_length, valid_steps


def discounted_returns(
    rewards: Float[Array, " T"],
    discounts: Float[Array, " T"] | float,
    valid: Bool[Array, " T"] | None = None,
) -> Float[Array, " T"]:
    """G_t = Σ_{k=t+1..T} (Π_{j=t+1..k-1} γ_j) R_k, the Monte Carlo return.

    With a constant discount γ this is the paper's G_t = Σ_k γ^{k−t−1} R_k. Nothing is bootstrapped at the end.

    Args:
        rewards: `rewards[k]` is R_{k+1}.
        discounts: γ, or one discount per step.
        valid: padding mask; padded steps add nothing and return 0.
    """
    length = trajectory_length("rewards", rewards)
    mask = valid_steps(valid, length)
    decays = per_step("discounts", discounts, length, rewards.dtype)
    return backward_recurrence(jnp.where(mask, rewards, 0.0), jnp.where(mask, decays, 0.0))


def td_errors(
    rewards: Float[Array, " T"],
    values: Float[Array, " T_plus_1"],
    discounts: Float[Array, " T"] | float,
    valid: Bool[Array, " T"] | None = None,
) -> Float[Array, " T"]:
    """δ_{k+1} = R_{k+1} + γ_{k+1} v(S_{k+1}) − v(S_k), stored at index k.

    Args:
        rewards: `rewards[k]` is R_{k+1}.
        values: T+1 values; the last one bootstraps an episode that was cut.
        discounts: γ, or one discount per step (0 where the episode terminated).
        valid: padding mask; padded steps give 0.
    """
    length = trajectory_length("rewards", rewards)
    expect_shape("values (one more entry than rewards)", values, (length + 1,))
    mask = valid_steps(valid, length)
    decays = per_step("discounts", discounts, length, rewards.dtype)
    before, after = jnp.where(mask, values[:-1], 0.0), jnp.where(mask, values[1:], 0.0)
    return jnp.where(mask, rewards, 0.0) + jnp.where(mask, decays, 0.0) * after - before


def lambda_advantages(
    rewards: Float[Array, " T"],
    values: Float[Array, " T_plus_1"],
    discounts: Float[Array, " T"] | float,
    lambda_: Float[Array, " T"] | float,
    valid: Bool[Array, " T"] | None = None,
) -> Float[Array, " T"]:
    """Ψ_t = Σ_{k=t+1..T} (Π_{j=t+1..k-1} γ_j λ_j) δ_k, the λ-estimator (also known as GAE).

    λ = 1 gives the Monte Carlo return minus v(S_t) (plus the bootstrap of a cut episode), λ = 0 the TD error.

    Args:
        rewards: `rewards[k]` is R_{k+1}.
        values: T+1 values.
        discounts: γ, or one discount per step (0 where the episode terminated).
        lambda_: λ, or one per step: `lambda_[k]` belongs to S_{k+1} and weighs everything after it.
        valid: padding mask; padded steps give 0.
    """
    errors = td_errors(rewards, values, discounts, valid)
    length = trajectory_length("rewards", rewards)
    mask = valid_steps(valid, length)
    decays = per_step("discounts", discounts, length, rewards.dtype)
    traces = per_step("lambda_", lambda_, length, rewards.dtype)
    return backward_recurrence(errors, jnp.where(mask, decays, 0.0) * jnp.where(mask, traces, 0.0))


def standardise(
    x: Float[Array, "*shape"],
    valid: Bool[Array, "*shape"] | None = None,
    *,
    epsilon: float = 1e-8,
    differentiate_statistics: bool = False,
    statistics_of: Float[Array, "*shape"] | None = None,
) -> Float[Array, "*shape"]:
    """(x − mean) / (deviation + ε) over all valid entries, batch axes included; padding becomes 0.

    Args:
        x: advantages of a trajectory or of a whole batch.
        valid: the entries that count.
        epsilon: added to the deviation, so that a constant x gives 0.
        differentiate_statistics: whether gradients pass through mean and deviation. If not, only the numerator
            carries them, which keeps metagradients stable.
        statistics_of: take mean and deviation from this array (as a constant) and not from x. A finite-difference
            check holds detached statistics fixed this way.
    """
    mask = jnp.ones(x.shape, dtype=bool) if valid is None else valid
    expect_shape("valid", mask, x.shape)
    source = x if statistics_of is None else statistics_of
    expect_shape("statistics_of", source, x.shape)
    if not differentiate_statistics or statistics_of is not None:
        source = jax.lax.stop_gradient(source)
    count = jnp.maximum(jnp.sum(jnp.where(mask, 1.0, 0.0).astype(x.dtype)), 1.0)
    # Everything is measured from one of the entries, so that the mean of equal numbers is that number exactly.
    origin = jax.lax.stop_gradient(jnp.max(jnp.where(mask, source, -jnp.inf)))
    origin = jnp.where(jnp.any(mask), origin, 0.0)
    shifted = jnp.where(mask, source - origin, 0.0)
    mean = jnp.sum(shifted) / count
    variance = jnp.sum(jnp.square(jnp.where(mask, shifted - mean, 0.0))) / count
    positive = variance > 0
    deviation = jnp.where(positive, jnp.sqrt(jnp.where(positive, variance, 1.0)), 0.0)
    return jnp.where(mask, (jnp.where(mask, x - origin, 0.0) - mean) / (deviation + epsilon), 0.0)


def backward_recurrence(inputs: Float[Array, " T"], decays: Float[Array, " T"]) -> Float[Array, " T"]:
    """x_t = inputs_t + decays_t · x_{t+1}, with x_T = 0, for all t at once.

    An associative scan: log2(T) vector operations in place of a loop of T steps, which is faster for small tables on
    a CPU and for long episodes on a GPU.
    """

    def compose(later: tuple[Array, Array], earlier: tuple[Array, Array]) -> tuple[Array, Array]:
        decay_later, sum_later = later
        decay_earlier, sum_earlier = earlier
        return decay_later * decay_earlier, sum_earlier + decay_earlier * sum_later

    _, result = jax.lax.associative_scan(compose, (decays, inputs), reverse=True)
    return result
