"""Reward redistribution: from predictions of the return, made step after step, to rewards without delay.

One trajectory at a time; batch with `jax.vmap`. `predictions[t]` is g_t, the whole return as a predictor expects it
that has seen S_0, A_0 … S_t, A_t. `valid` marks the steps of the episode; padding is never read.

Where rollouts are segments of a stream of episodes, episodes are cut into sequences of limited length, which may begin
in one segment and end in a later one: `mark_sequences` finds them, `redistribute_stream` works on them.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from paircredit.errors import refuse_unknown, unknown_name
from paircredit.estimators.shapes import expect_shape, trajectory_length, valid_steps

Compensation = Literal["last", "spread", "none"]
STREAM_COMPENSATIONS = ("last", "none")
"""The compensations that do not change rewards of earlier segments."""


def prediction_differences(
    predictions: Float[Array, " T"], valid: Bool[Array, " T"] | None = None
) -> Float[Array, " T"]:
    """g_t − g_{t−1}, with g_{−1} = 0: what each step added to the predicted return; padded steps give 0."""
    length = trajectory_length("predictions", predictions)
    mask = valid_steps(valid, length)
    newest = _newest_valid(mask)
    standing = jnp.where(newest >= 0, jnp.where(mask, predictions, 0.0)[newest], 0.0)
    return standing - jnp.concatenate([jnp.zeros_like(standing[:1]), standing[:-1]])


def redistribute(
    predictions: Float[Array, " T"],
    rewards: Float[Array, " T"],
    valid: Bool[Array, " T"] | None = None,
    compensation: Compensation = "last",
) -> Float[Array, " T"]:
    """Rewards R'_{t+1} = g_t − g_{t−1}, made to sum to the return G = Σ R.

    Args:
        predictions: g, in the units of the rewards.
        rewards: `rewards[t]` is R_{t+1}.
        valid: padding mask; padded steps give 0.
        compensation: the steps that get the error G − g_T of the last prediction: the `last` one, all in equal parts
            (`spread`), or none (`none`; the sum is then g_T).
    """
    length = trajectory_length("rewards", rewards)
    expect_shape("predictions", predictions, (length,))
    mask = valid_steps(valid, length)
    differences = prediction_differences(predictions, mask)
    if compensation == "none":
        return differences
    missing = jnp.sum(jnp.where(mask, rewards, 0.0)) - jnp.sum(differences)
    if compensation == "spread":
        return differences + jnp.where(mask, missing / jnp.maximum(jnp.sum(mask), 1).astype(rewards.dtype), 0.0)
    if compensation != "last":
        raise unknown_name("compensation", compensation, ("last", "spread", "none"))
    return differences + jnp.where(jnp.arange(length) == _newest_valid(mask)[-1], missing, 0.0)


class SequenceMarks(NamedTuple):
    """The sequences of a segment of a stream.

    `position` is the number of each step in its sequence, from 0 (and 0 at steps that are not valid). A sequence
    `starts` with its first step and `closes` after the step that completes it: its last one, or one that is not valid
    and shows that the sequence before it was complete. `length` counts the steps so far of the sequence that goes on
    after the segment, 0 if none does.
    """

    position: Int[Array, " T"]
    starts: Bool[Array, " T"]
    closes: Bool[Array, " T"]
    length: Int[Array, ""]


def mark_sequences(
    valid: Bool[Array, " T"], ends: Bool[Array, " T"], length: Int[Array, ""], most: int
) -> SequenceMarks:
    """Cut a segment of a stream into sequences of at most `most` steps, none across the end of an episode.

    `valid` are the steps of episodes and `ends` the last ones of them, anything elsewhere; `length` counts the steps of
    the running sequence before the segment.
    """
    count = trajectory_length("valid", valid)
    expect_shape("ends", ends, (count,))
    steps = jnp.arange(count, dtype=length.dtype)
    over = jnp.where(valid, ends, True)  # nothing goes on after this step
    anew = ~valid | jnp.concatenate([jnp.zeros((1,), dtype=bool), over[:-1]])
    since = jax.lax.cummax(jnp.where(anew, steps, -1))
    position = jnp.where(since >= 0, steps - since, steps + length) % most
    last = valid & (ends | (position == most - 1))
    running = jnp.where(valid & ~last, position + 1, 0)
    before = jnp.concatenate([length[None], running[:-1]])
    return SequenceMarks(position, valid & (position == 0), jnp.where(valid, last, before > 0), running[-1])


def redistribute_stream(
    predictions: Float[Array, " T"],
    rewards: Float[Array, " T"],
    marks: SequenceMarks,
    valid: Bool[Array, " T"],
    standing: Float[Array, ""],
    missing: Float[Array, ""],
    compensation: Compensation = "last",
) -> tuple[Float[Array, " T"], Float[Array, ""]]:
    """`redistribute` for a stream of sequences, of which one segment is given at a time.

    `standing` is the prediction before the first step of the segment, and `missing` the sum Σ (R − R') so far of the
    sequence that it goes on with. What is missing at the end of a sequence goes to its `last` step or nowhere (`none`).
    It cannot be spread: earlier segments were learned from by then. Returns the rewards R', and the sum that is missing
    after the segment.
    """
    length = trajectory_length("rewards", rewards)
    expect_shape("predictions", predictions, (length,))
    refuse_unknown("compensation in a stream", compensation, STREAM_COMPENSATIONS)
    before = jnp.concatenate([standing[None], predictions[:-1]])
    differences = jnp.where(valid, predictions - jnp.where(marks.starts, 0.0, before), 0.0)
    errors = jnp.where(valid, rewards, 0.0) - differences

    def step(missing: Array, now: tuple[Array, Array]) -> tuple[Array, Array]:
        start, error = now
        missing = jnp.where(start, 0.0, missing) + error
        return missing, missing

    missing, by_step = jax.lax.scan(step, missing, (marks.starts, errors))
    if compensation == "none":
        return differences, missing
    return differences + jnp.where(marks.closes & valid, by_step, 0.0), missing


def _newest_valid(mask: Bool[Array, " T"]) -> Int[Array, " T"]:
    """The number of the last valid step up to each step; −1 where there was none."""
    return jax.lax.cummax(jnp.where(mask, jnp.arange(mask.shape[0]), -1))


def prediction_quality(
    predictions: Float[Array, " N"],
    returns: Float[Array, " N"],
    largest: Float[Array, ""] | float,
    tolerance: float = 0.2,
) -> Float[Array, ""]:
    """The quality of N predicted returns: mean of 1 − |G − g_T| / (tolerance · largest), within 0 … 1.

    It is positive where the mean error is below the fraction `tolerance` of the largest |G| known.
    """
    expect_shape("predictions", predictions, returns.shape)
    scale = tolerance * jnp.asarray(largest, dtype=returns.dtype)
    error = jnp.mean(jnp.abs(returns - predictions))
    return jnp.where(scale > 0, jnp.clip(1 - error / jnp.where(scale > 0, scale, 1.0), 0.0, 1.0), 0.0)


def mix_advantages(
    regular: Float[Array, "*shape"], redistributed: Float[Array, "*shape"], mix: Float[Array, ""] | float
) -> Float[Array, "*shape"]:
    """(1 − m) Ψ + m Ψ', the advantage of the environment's rewards and that of the redistributed ones."""
    m = jnp.asarray(mix, dtype=regular.dtype)
    return (1 - m) * regular + m * redistributed
