"""The return predictor on a stream of episodes: it reads on from segment to segment, and learns now and then.

In a stream the return that is predicted is that of a sequence: an episode, or a part of `prediction.steps` steps of it.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from paircredit.envs.protocol import Environment
from paircredit.estimators.redistribution import Compensation, SequenceMarks, prediction_quality, redistribute_stream
from paircredit.methods.loops import Trained
from paircredit.methods.replay import SequenceBuffer
from paircredit.methods.return_prediction import RECENT, ReturnPrediction
from paircredit.networks import NetworkSpec
from paircredit.networks.return_predictor import ReturnPredictor
from paircredit.types import PyTree, Trajectory


class ReaderState(eqx.Module):
    """How far the predictor has read the running sequences of B actors: its cell, the last frames, and Σ (R − R')."""

    memory: Float[Array, "B C"]
    frame: PyTree
    missing: Float[Array, " B"]


class StreamState(eqx.Module):
    """What the training and the reading of a predictor go on from, after a number of updates of the policy."""

    optimiser: PyTree
    buffer: SequenceBuffer
    reader: ReaderState
    updates: Int[Array, ""]
    key: Key[Array, ""]


def start_stream(
    prediction: ReturnPrediction, key: Key[Array, ""], env: Environment, network: NetworkSpec, actors: int
) -> Trained:
    """A predictor at the start of its training, before the first segment of this many actors."""
    below, draws = jax.random.split(key)
    predictor = prediction.predictor(below, env, network)
    observation = jax.eval_shape(env.reset, jax.random.key(0))[1].observation
    frame = jax.eval_shape(predictor.seen, observation)
    state = StreamState(
        optimiser=prediction.optimiser.init(predictor),
        buffer=SequenceBuffer.empty(frame, actors, prediction.capacity, prediction.steps),
        reader=ReaderState(
            memory=jnp.zeros((actors, prediction.cells), dtype=float),
            frame=jax.tree.map(lambda x: jnp.zeros((actors, *x.shape), x.dtype), frame),
            missing=jnp.zeros((actors,), dtype=float),
        ),
        updates=jnp.zeros((), dtype=jnp.int32),
        key=draws,
    )
    return Trained(predictor, state)


def learn_from_segment(
    prediction: ReturnPrediction,
    trained: Trained,
    segment: Trajectory,
    largest: Float[Array, ""],
    quality: Float[Array, ""],
    compensation: Compensation,
) -> tuple[Trained, Float[Array, ""], Float[Array, ""], Float[Array, "B T"]]:
    """Store the next segment of every actor, learn if it is time to, then redistribute its rewards.

    `largest` is the largest |return| of a sequence so far, and `quality` that of the predictions when the predictor
    last learned, 0 before. Returns predictor, largest and quality afterwards, and the redistributed rewards.
    """
    state: StreamState = trained.state
    marks = state.buffer.marks(segment)
    frames = trained.parameters.seen(jax.tree.map(lambda x: x[:, :-1], segment.observations))
    buffer, new = state.buffer.add(frames, segment.actions, segment.rewards, segment.valid, marks)
    largest, updates = jnp.maximum(largest, new), state.updates + 1
    key, draws = jax.random.split(state.key)
    enough = buffer.stored >= max(prediction.warm_up, 1)
    due = enough & (updates % prediction.every == 0) & (largest > 0)  # returns that are all 0 teach nothing
    predictor, optimiser, quality = train_if_due(
        prediction, (trained.parameters, state.optimiser), buffer, draws, due, largest, quality
    )
    redistributed, reader = redistribute_segment(
        prediction, predictor, state.reader, segment, marks, largest, compensation
    )
    after = StreamState(optimiser, buffer, reader, updates, key)
    return Trained(predictor, after), largest, quality, redistributed


def redistribute_segment(
    prediction: ReturnPrediction,
    predictor: ReturnPredictor,
    reader: ReaderState,
    segment: Trajectory,
    marks: SequenceMarks,
    largest: Float[Array, ""],
    compensation: Compensation,
) -> tuple[Float[Array, "B T"], ReaderState]:
    """The redistributed rewards of the next segment of every actor, and where the predictor then is.

    It goes on from the memories it has, made of the sequence before it last learned; the prediction that the first step
    is compared with is made anew of the memory, so that learning is no reward.
    """
    observations = jax.tree.map(lambda x: x[:, :-1], segment.observations)
    reading = jax.vmap(predictor.read)(
        observations, segment.actions, segment.valid, marks.starts, reader.frame, reader.memory
    )
    factor = prediction.factor(largest)

    redistributed, missing = jax.vmap(partial(redistribute_stream, compensation=compensation))(
        reading.predictions / factor, segment.rewards, marks, segment.valid, reading.standing / factor, reader.missing
    )
    last = jax.tree.map(lambda x: x[:, -1], predictor.seen(observations))
    return redistributed, ReaderState(reading.memory, last, missing)


class _Round(NamedTuple):
    """A round of training: the predictor, minibatches so far, and predictions and returns of the last sequences."""

    predictor: ReturnPredictor
    optimiser: PyTree
    number: Int[Array, ""]
    predicted: Float[Array, " J"]
    returns: Float[Array, " J"]
    quality: Float[Array, ""]


def train_if_due(
    prediction: ReturnPrediction,
    trained: tuple[ReturnPredictor, PyTree],
    buffer: SequenceBuffer,
    key: Key[Array, ""],
    due: Bool[Array, ""],
    largest: Float[Array, ""],
    quality: Float[Array, ""],
) -> tuple[ReturnPredictor, PyTree, Float[Array, ""]]:
    """Up to `prediction.epochs` epochs, until the predictions of the last sequences learned from can be trusted at all.

    A loop that does not begin is all it costs while nothing is due, also with a member axis, where a branch would be
    computed always. Returns the predictor, its optimiser, and the quality of the last predictions made before learning
    from them.
    """
    size, most = prediction.batch_size, prediction.epochs * max(1, prediction.capacity // prediction.batch_size)
    evaluated = min(RECENT, most * size)
    factor = prediction.factor(largest)

    def goes_on(now: _Round) -> Bool[Array, ""]:
        trusted = (now.number * size >= evaluated) & (now.quality > 0)
        return due & (now.number < most) & ~trusted

    def step(now: _Round) -> _Round:
        sequences = buffer.sample(jax.random.fold_in(key, now.number), size)
        predictor, optimiser, last, targets = prediction.step(now.predictor, now.optimiser, sequences, factor)
        predicted = jnp.concatenate([now.predicted, last])[-evaluated:]
        returns = jnp.concatenate([now.returns, targets])[-evaluated:]
        return _Round(
            predictor,
            optimiser,
            now.number + 1,
            predicted,
            returns,
            prediction_quality(predicted, returns, factor * largest),
        )

    nothing = jnp.zeros((evaluated,), dtype=float)
    start = _Round(*trained, jnp.zeros((), dtype=jnp.int32), nothing, nothing, quality)
    end = jax.lax.while_loop(goes_on, step, start)
    return end.predictor, end.optimiser, end.quality
