"""Rewards with value of the future added: synthetic returns, and temporal value transport.

One episode at a time; batch with `jax.vmap`. `rewards[t]` is what followed the action in S_t. Padding may hold NaN.

*Synthetic returns*: rewards are explained by the states before them, and paid where those states are: c(S_t) is
`contributions[t]`. *Transport*: a strong memory read of the distant past carries the reader's value back to it. Row q
of the memory holds what was written at step q, so that a read weight says how much of a read came from which time.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from paircredit.errors import PaircreditError
from paircredit.estimators.shapes import expect_shape, trajectory_length, valid_steps

UNDISCOUNTED_WINDOW = 25
"""Steps that count as recent where γ = 1 and 1/(1 − γ) says nothing (TVT, published code)."""


def recency_window(discount: Float[Array, ""] | float) -> Int[Array, ""]:
    """⌊1/(1 − γ)⌋, how many steps back the discounted return still reaches; 25 where γ = 1.

    Rounding does not decide: γ = 0.9 is 10 steps, though 1 − 0.9 in floating point is not 0.1.
    """
    gap = 1 - jnp.asarray(discount, dtype=float)
    steps = 1 / jnp.where(gap > 0, gap, 1.0)
    return jnp.where(gap > 0, jnp.floor(steps * (1 + 1e-5)), UNDISCOUNTED_WINDOW).astype(jnp.int32)


def transported_values(
    read_weights: Float[Array, "T H R"],
    strengths: Float[Array, "T H"],
    values: Float[Array, " T"],
    window: Int[Array, ""] | int,
    threshold: float,
    alpha: float,
    valid: Bool[Array, " T"] | None = None,
) -> Float[Array, " T"]:
    """bonus[q] = α Σ_h Σ_u w[u, h, q] v(S_u) over the splice events u of head h with u − q > n.

    A read counts as recent where its largest weight lies at most n steps back, or on a row not yet written. A splice
    event is the step with the largest strength in a run of consecutive steps that read with a strength above the
    threshold and are not recent; a run may still be open at the end of the episode. Of an event's weights, those of
    recent rows are left out. The bonus is added to the reward that follows the action at q.

    Args:
        read_weights: `read_weights[t, h, q]` is the weight of row q (what was written at step q) in the read of head h
            at step t; there is at least one row per step. Rows from t on are not written yet.
        strengths: the strength with which each head read.
        values: `values[t]` is v(S_t), as the agent saw it when it acted.
        window: the number n of steps that count as recent, see `recency_window`.
        threshold: a read transports only where its strength is above this.
        alpha: the share of the value that is transported.
        valid: padding mask; padded steps neither read nor are read.
    """
    length = trajectory_length("values", values)
    if read_weights.ndim != 3 or read_weights.shape[0] != length or read_weights.shape[2] < length:
        raise PaircreditError(
            f"read_weights has shape {read_weights.shape}, but (steps, heads, rows) with {length} steps and at least "
            "as many rows is needed here."
        )
    expect_shape("strengths (one per step and head)", strengths, read_weights.shape[:2])
    mask, window = valid_steps(valid, length), jnp.asarray(window, dtype=jnp.int32)
    steps = jnp.arange(length, dtype=jnp.int32)
    events = jax.vmap(_splice_events, in_axes=(1, 1, None, None, None), out_axes=1)(
        read_weights, strengths, window, threshold, mask
    )
    carried = jnp.where(events, jnp.where(mask, values, 0.0)[:, None], 0.0)
    distant = (steps[:, None] - steps[None, :] > window) & mask[:, None] & mask[None, :]
    counted = jnp.where(distant[:, None, :], read_weights[:, :, :length], 0.0)
    return alpha * jnp.einsum("uh,uhq->q", carried, counted, precision=jax.lax.Precision.HIGHEST)


def _splice_events(
    read_weights: Float[Array, "T R"],
    strengths: Float[Array, " T"],
    window: Int[Array, ""],
    threshold: float,
    valid: Bool[Array, " T"],
) -> Bool[Array, " T"]:
    """The steps at which one head transports: the strongest of every run above the threshold, the first of equals."""
    steps = jnp.arange(strengths.shape[0], dtype=jnp.int32)
    recent = steps - jnp.argmax(read_weights, axis=-1).astype(jnp.int32) <= window
    above = valid & (jnp.where(recent, 0.0, strengths) > threshold)
    starts = above & ~jnp.concatenate([jnp.zeros((1,), dtype=bool), above[:-1]])
    nowhere = strengths.shape[0]  # a segment of its own for the steps outside all runs
    run = jnp.where(above, jnp.cumsum(starts) - 1, nowhere)
    counted = jnp.where(above & ~recent, strengths, 0.0)
    largest = jax.ops.segment_max(counted, run, nowhere + 1)
    first = jax.ops.segment_min(jnp.where(counted == largest[run], steps, nowhere), run, nowhere + 1)
    return above & (steps == first[run])


def associated_rewards(
    contributions: Float[Array, " T"],
    gates: Float[Array, " T"],
    biases: Float[Array, " T"],
    valid: Bool[Array, " T"] | None = None,
) -> Float[Array, " T"]:
    """g(S_t) Σ_{k<t} c(S_k) + b(S_t), a prediction of the reward that follows S_t from the states before it.

    Args:
        contributions: c of every state, what it adds to rewards that come later.
        gates: g of every state, how much of that arrives there.
        biases: b of every state, what arrives there whatever came before.
        valid: padding mask; padded steps add nothing and give 0.
    """
    length = trajectory_length("contributions", contributions)
    expect_shape("gates", gates, (length,))
    expect_shape("biases", biases, (length,))
    mask = valid_steps(valid, length)
    own = jnp.where(mask, contributions, 0.0)
    before = jnp.cumsum(own) - own
    return jnp.where(mask, gates, 0.0) * before + jnp.where(mask, biases, 0.0)


def synthetic_rewards(
    rewards: Float[Array, " T"],
    contributions: Float[Array, " T"],
    synthetic_weight: float | Float[Array, ""],
    reward_weight: float | Float[Array, ""] = 1.0,
    valid: Bool[Array, " T"] | None = None,
) -> Float[Array, " T"]:
    """α c(S_t) + β r_t, the rewards that an agent learns from.

    Args:
        rewards: the rewards of the environment.
        contributions: c of every state.
        synthetic_weight: α.
        reward_weight: β.
        valid: padding mask; padded steps give 0.
    """
    length = trajectory_length("rewards", rewards)
    expect_shape("contributions", contributions, (length,))
    mask = valid_steps(valid, length)
    return synthetic_weight * jnp.where(mask, contributions, 0.0) + reward_weight * jnp.where(mask, rewards, 0.0)
