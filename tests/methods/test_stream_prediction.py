"""The return predictor on a stream: piece by piece as on whole sequences, and when and how long it learns."""

from __future__ import annotations

import dataclasses
import itertools
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.envs.protocol import Discrete, EnvSpec, Pixels
from paircredit.estimators import redistribute
from paircredit.methods.replay import Episodes
from paircredit.methods.return_prediction import ReturnPrediction
from paircredit.methods.stream_prediction import learn_from_segment, redistribute_segment, start_stream, train_if_due
from paircredit.networks import NetworkSpec
from paircredit.networks.layers import Dense
from paircredit.types import TimeStep
from tests.methods.streams import ACTIONS, STATES, Stream, make_stream, picture, recorded, state

TINY = NetworkSpec(filters=(2, 2), picture_width=6, trunk=(6, 5), pair_width=8, precision="float32")
PREDICTION = ReturnPrediction(
    learning_rate=0.01, width=6, cells=4, batch_size=4, capacity=12, start="xavier", steps=5, every=3, epochs=2
)
SHOWN = {state: Discrete(STATES), picture: Pixels(4, 5, 4, 2), "stacked": Pixels(4, 5, 4, 2, stacked=4)}


class Shape:
    """As much of an environment as a predictor asks about: what it shows."""

    def __init__(self, observe):
        self.first = picture(np.random.default_rng(0)) if observe != state else jnp.zeros((), dtype=jnp.int32)
        self.spec = EnvSpec("stream", ACTIONS, SHOWN[observe], 6, whole_episodes=False)

    def reset(self, key):
        nothing = jnp.zeros((), dtype=bool)
        return (), TimeStep(self.first, jnp.ones((ACTIONS,), dtype=bool), jnp.zeros(()), nothing, nothing)

    def step(self, key, state, action):
        raise AssertionError("a predictor looks at what is shown first, and never steps")


def started(prediction: ReturnPrediction, actors: int, observe=state):
    return jax.jit(lambda key: start_stream(prediction, key, Shape(observe), TINY, actors))(jax.random.key(0))


@jax.jit
def predictions(predictor, seen, actions, valid):
    return predictor(seen, actions, valid)


def whole(predictor, stream: Stream, sequence, compensation: str, factor: float) -> np.ndarray:
    """The redistributed rewards of one sequence of at most five steps, read at once."""
    steps = [stream.lives[sequence.actor][i] for i in sequence.numbers]
    padded = steps + [steps[-1]] * (5 - len(steps))
    valid = jnp.arange(5) < len(steps)
    seen = jax.tree.map(lambda *x: jnp.asarray(np.stack(x)), *(s.observation for s in padded))
    g = predictions(predictor, seen, jnp.asarray([s.action for s in padded]), valid) / factor
    rewards = jnp.asarray([s.reward for s in padded])
    return np.asarray(redistribute(g, rewards, valid, compensation))[: len(steps)]


class TestReading:
    @pytest.mark.parametrize(
        "observe, settings, compensation",
        [
            (state, {"scaling": "largest"}, "last"),
            (state, {"scaling": "largest"}, "none"),
            (state, {"first_change": "whole", "inputs": "change"}, "last"),
            (picture, {"inputs": "change"}, "last"),
            ("stacked", {"inputs": "change", "scaling": "largest", "first_change": "whole"}, "last"),
        ],
    )
    def test_segment_by_segment_is_as_whole_sequences(self, observe, settings, compensation):
        """Episodes end in mid-segment and go on after it, sequences of five steps become full anywhere."""
        stream = make_stream(3, 3, 6, 7, 9, picture if observe == "stacked" else observe)
        before, cut, after = stream.lives[0][12:15]  # an episode is cut with the last step of a segment
        before.end, before.valid, before.reward = "life", True, 0.5
        cut.end, cut.valid, cut.reward = "truncated", True, 1.0
        after.end, after.valid, after.reward = "", False, np.nan
        prediction = dataclasses.replace(PREDICTION, **settings)
        trained, largest = started(prediction, 3, observe), jnp.asarray(4.0)
        predictor, places, recordings = trained.parameters, trained.state.reader, trained.state.buffer

        @jax.jit
        def next_segment(places, recordings, segment):
            marks = recordings.marks(segment)
            rewards, places = redistribute_segment(prediction, predictor, places, segment, marks, largest, compensation)
            return rewards, places, dataclasses.replace(recordings, running=marks.length)

        given = []
        for segment in stream.segments():
            rewards, places, recordings = next_segment(places, recordings, segment)
            assert not np.asarray(rewards)[~np.asarray(segment.valid)].any()
            given.append(np.asarray(rewards))
        given = np.concatenate(given, axis=1)
        factor = 2.5 if prediction.scaling == "largest" else 1.0
        complete = list(itertools.chain(*recorded(stream, 5)))
        lengths = {len(s.numbers) for s in complete}
        assert {1, 5} <= lengths and any(s.numbers[0] // 7 != s.numbers[-1] // 7 for s in complete)
        assert any(s.late for s in complete)
        for sequence in complete:
            found = given[sequence.actor, sequence.numbers]
            # What a sequence lacks at its end cannot be given where its last segment did not show the end.
            paid = "none" if sequence.late else compensation
            np.testing.assert_allclose(found, whole(predictor, stream, sequence, paid, factor), rtol=1e-5, atol=1e-5)
            if paid == "last":
                earned = sum(stream.lives[sequence.actor][i].reward for i in sequence.numbers)
                np.testing.assert_allclose(found.sum(), earned, rtol=1e-5, atol=1e-5)

    def test_learning_between_two_segments_pays_nobody_and_the_sum_is_still_the_return(self):
        """Another head in mid-sequence: steps get what they add by the new one, the last step what is missing."""
        stream = make_stream(5, 1, 3, 4, 30)
        steps = stream.lives[0]
        for i, step in enumerate(steps):
            step.end, step.valid, step.reward = ("terminated" if i == 6 else ""), i != 7, float(i)
        trained = started(dataclasses.replace(PREDICTION, steps=100), 1)
        one, two = stream.segments()[:2]
        old, recordings = trained.parameters, trained.state.buffer
        new = dataclasses.replace(old, head=Dense(3 * old.head.weight, old.head.bias + 1))
        marks = recordings.marks(one)
        known = jax.jit(lambda *given: redistribute_segment(PREDICTION, *given, jnp.asarray(1.0), "last"))
        first, places = known(old, trained.state.reader, one, marks)
        recordings = dataclasses.replace(recordings, running=marks.length)
        marks = recordings.marks(two)
        second, _ = known(new, places, two, marks)
        np.testing.assert_allclose(first.sum() + second.sum(), sum(range(7)), rtol=1e-5)
        plain, _ = known(old, places, two, marks)
        np.testing.assert_allclose(second[0, :2], 3 * plain[0, :2], rtol=1e-4, atol=1e-6)

    def test_only_the_newest_frame_is_kept_and_seen(self):
        trained = started(dataclasses.replace(PREDICTION, inputs="change"), 3, "stacked")
        assert trained.state.buffer.frames.pixels.shape == (15, 5, 4, 5, 1)
        assert trained.state.buffer.frames.flags.shape == (15, 5, 2)
        assert trained.state.reader.frame.pixels.shape == (3, 4, 5, 1)
        assert trained.parameters.frame is None
        stream = make_stream(3, 3, 2, 7, 9, picture)
        after = advance(PREDICTION, trained, stream.segments()[0], jnp.zeros(()), jnp.zeros(()))[0]
        newest = stream.segments()[0].observations.pixels[:, 6, :, :, -1:]
        np.testing.assert_array_equal(after.state.reader.frame.pixels, newest)
        sequence = recorded(stream, 5)[0][0]
        slot = after.state.buffer.slots.ring[0]
        expected = [stream.lives[sequence.actor][i].observation.pixels[..., -1:] for i in sequence.numbers]
        np.testing.assert_array_equal(after.state.buffer.frames.pixels[slot, : len(expected)], expected)


advance = jax.jit(lambda prediction, *rest: learn_from_segment(prediction, *rest, "last"))


def moved(before, after) -> bool:
    return any(bool((a != b).any()) for a, b in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True))


class TestSchedule:
    def steps_by_update(
        self, prediction: ReturnPrediction, segments: int = 9
    ) -> tuple[list[int], list[int], list[float]]:
        """Of one training: steps of the optimiser, sequences stored and the quality, after each segment."""
        stream = make_stream(3, 3, segments, 3, 9)
        trained, largest, quality = started(prediction, 3), jnp.zeros(()), jnp.zeros(())
        steps, stored, qualities = [], [], []
        for segment in stream.segments():
            after, largest, quality, _ = advance(prediction, trained, segment, largest, quality)
            took = int(after.state.optimiser.steps - trained.state.optimiser.steps)
            assert moved(trained.parameters, after.parameters) == (took > 0)
            trained = after
            steps.append(took)
            stored.append(int(trained.state.buffer.stored))
            qualities.append(float(quality))
        return steps, stored, qualities

    def test_it_learns_every_third_update_and_not_before_enough_is_stored(self):
        most = 2 * 12 // 4
        steps, stored, _ = self.steps_by_update(dataclasses.replace(PREDICTION, learning_rate=1e-6))
        assert steps == [0, 0, most] * 3, "two epochs of capacity / batch_size steps"
        assert stored[2] < 8 <= stored[5]
        late = dataclasses.replace(PREDICTION, learning_rate=1e-6, warm_up=8)
        assert self.steps_by_update(late)[0] == [0, 0, 0] + [0, 0, most] * 2

    def test_it_stops_when_the_last_forty_predictions_can_be_trusted(self):
        """Learning as long as it takes; then 40 sequences, ten steps, are seen before they are evaluated."""
        prediction = dataclasses.replace(PREDICTION, learning_rate=0.03, epochs=1000)
        steps, _, qualities = self.steps_by_update(prediction)
        assert all(10 <= took < 3000 for took in steps[2::3]) and steps[2] > 10
        assert qualities[0] == 0 and all(0 < q < 0.5 for q in qualities[2:])
        assert qualities[2] == qualities[3] == qualities[4], "between two rounds it stays"

    @pytest.mark.nightly
    def test_predictions_that_are_good_already_cost_forty_sequences(self):
        stream = make_stream(3, 3, 3, 6, 4)
        trained = started(PREDICTION, 3)
        for segment in stream.segments():
            trained = advance(PREDICTION, trained, segment, jnp.zeros(()), jnp.zeros(()))[0]
        state = trained.state
        train = jax.jit(partial(train_if_due, dataclasses.replace(PREDICTION, epochs=50, learning_rate=0.0)))
        for largest, expected in ((1e6, 10), (1e-6, 50 * 3)):
            _, optimiser, quality = train(
                (trained.parameters, state.optimiser),
                state.buffer,
                jax.random.key(1),
                jnp.asarray(True),
                jnp.asarray(largest),
                jnp.asarray(0.25),
            )
            assert optimiser.steps - state.optimiser.steps == expected
            assert (quality > 0.9) if largest > 1 else (quality == 0)

    def test_returns_are_scaled_for_learning_and_for_the_quality(self):
        """With the largest return 4 made to be 10, all is as with returns that are 2.5 times as large."""
        trained = started(PREDICTION, 3)
        for segment in make_stream(3, 3, 3, 6, 4).segments():
            trained = advance(PREDICTION, trained, segment, jnp.zeros(()), jnp.zeros(()))[0]
        recordings = trained.state.buffer
        larger = eqx.tree_at(lambda r: r.slots.returns, recordings, 2.5 * recordings.slots.returns)

        def learned(prediction, recordings, largest):
            given = (trained.parameters, trained.state.optimiser), recordings, jax.random.key(1), jnp.asarray(True)
            return train_if_due(prediction, *given, jnp.asarray(largest), jnp.zeros(()))

        found = learned(dataclasses.replace(PREDICTION, scaling="largest"), recordings, 4.0)
        expected = learned(PREDICTION, larger, 10.0)
        jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-7), found, expected)
        assert moved(found[0], learned(PREDICTION, recordings, 4.0)[0])

    def test_returns_that_are_all_zero_are_not_learned(self):
        stream = make_stream(3, 3, 6, 6, 4)
        for life in stream.lives:
            for step in life:
                step.reward = 0.0
        trained = started(PREDICTION, 3)
        for segment in stream.segments():
            trained = advance(PREDICTION, trained, segment, jnp.zeros(()), jnp.zeros(()))[0]
        assert trained.state.buffer.stored > 12 and trained.state.optimiser.steps == 0

    def test_draws_differ_from_round_to_round(self):
        trained = started(PREDICTION, 3)
        segment = make_stream(3, 3, 2, 6, 4).segments()[0]
        after = advance(PREDICTION, trained, segment, jnp.zeros(()), jnp.zeros(()))[0]
        assert (jax.random.key_data(after.state.key) != jax.random.key_data(trained.state.key)).any()

    def test_with_a_member_axis_the_recordings_are_not_carried_through_the_loop_and_nothing_branches(self):
        """What a loop carries is copied in each turn where members stop at different times."""
        trained = jax.tree.map(lambda x: jnp.stack([x, x]), started(PREDICTION, 3))
        segment = jax.tree.map(lambda x: jnp.stack([x, x]), make_stream(3, 3, 2, 6, 4).segments()[0])
        zeros = jnp.zeros((2,))
        jaxpr = jax.make_jaxpr(jax.vmap(lambda t, p, g, q: learn_from_segment(PREDICTION, t, p, g, q, "last")))(
            trained, segment, zeros, zeros
        )
        loops = [e for e in jaxpr.eqns if e.primitive.name == "while"]
        assert len(loops) == 1 and not any(e.primitive.name == "cond" for e in jaxpr.eqns)
        constants = loops[0].params["cond_nconsts"] + loops[0].params["body_nconsts"]
        shapes = [v.aval.shape for v in loops[0].invars]
        slots = (2, 15, 5)
        assert slots in shapes[:constants] and slots not in shapes[constants:]


def test_what_is_recorded_is_learned():
    """The error on the stored sequences goes down to a part of what it was."""
    prediction = dataclasses.replace(PREDICTION, epochs=20, capacity=30, every=10)
    stream = make_stream(3, 3, 20, 6, 6)
    for life in stream.lives:
        for step in life:
            step.reward = float(step.action)
    trained, largest, quality = started(prediction, 3), jnp.zeros(()), jnp.zeros(())

    def error(trained) -> float:
        stored = trained.state.buffer.sample(jax.random.key(0), 200)
        return float(jax.jit(prediction.loss)(trained.parameters, stored, stored.returns)[0])

    first = trained.parameters
    for segment in stream.segments():
        trained, largest, quality, _ = advance(prediction, trained, segment, largest, quality)
    assert error(trained) < 0.3 * error(dataclasses.replace(trained, parameters=first))
    assert quality > 0


def test_a_short_sequence_is_learned_from_where_gradients_are_cut():
    """Two steps of eight, gradients cut every three: they come from the end of the sequence, not from its padding."""
    prediction = dataclasses.replace(PREDICTION, chunk=3, steps=8)
    predictor = started(prediction, 1).parameters
    sequence = Episodes(
        observations=jnp.asarray([[1, 2] + [0] * 6], dtype=jnp.int32),
        actions=jnp.asarray([[0, 1] + [0] * 6], dtype=jnp.int32),
        valid=jnp.arange(8)[None] < 2,
        returns=jnp.ones((1,)),
    )
    cut, whole = (
        jax.jit(jax.grad(lambda p, c=c: c.loss(p, sequence, sequence.returns)[0]))(predictor)
        for c in (prediction, dataclasses.replace(prediction, chunk=None))
    )
    assert np.abs(whole.frame.table[1]).max() > 1e-4
    for a, b in zip(jax.tree.leaves(cut), jax.tree.leaves(whole), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
