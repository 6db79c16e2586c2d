"""SequenceBuffer of a stream against a plain recorder: many ends in a segment, full sequences, slots used again."""

from __future__ import annotations

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.methods.replay import SequenceBuffer
from tests.methods.streams import Sequence, Stream, make_stream, picture, recorded, state


@jax.jit
def added(recordings: SequenceBuffer, segment):
    frames = jax.tree.map(lambda x: x[:, :-1], segment.observations)
    return recordings.add(frames, segment.actions, segment.rewards, segment.valid, recordings.marks(segment))


def empty(stream: Stream, capacity: int, most: int) -> SequenceBuffer:
    frame = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(np.shape(x), np.asarray(x).dtype), stream.lives[0][0].observation
    )
    return SequenceBuffer.empty(frame, len(stream.lives), capacity, most)


def expect_stored(recordings: SequenceBuffer, stream: Stream, sequences: list[Sequence]) -> None:
    """What the ring holds are the last sequences, each at its place."""
    books = jax.device_get(recordings.slots)
    assert books.stored == len(sequences)
    for number, sequence in list(enumerate(sequences))[-recordings.slots.ring.size :]:
        place = number % recordings.slots.ring.size
        steps = [stream.lives[sequence.actor][i] for i in sequence.numbers]
        assert books.lengths[place] == len(steps)
        np.testing.assert_allclose(books.returns[place], sum(s.reward for s in steps), rtol=1e-5, atol=1e-6)
        slot = books.ring[place]
        np.testing.assert_array_equal(recordings.actions[slot, : len(steps)], [s.action for s in steps])
        expected = jax.tree.map(lambda *x: np.stack(x), *(s.observation for s in steps))
        for kept, x in zip(jax.tree.leaves(recordings.frames), jax.tree.leaves(expected), strict=True):
            np.testing.assert_array_equal(kept[slot, : len(steps)], x)


@pytest.mark.parametrize(
    "actors, steps, longest, most, capacity, observe",
    [
        (3, 7, 9, 5, 8, state),  # sequences become full in mid-segment, episodes go on after segments
        (4, 6, 2, 5, 4, state),  # up to 24 ends in a segment, a ring of 4: slots are used again and again
        (2, 4, 30, 6, 3, picture),  # long episodes, pictures and flags
        (1, 5, 6, 1, 2, state),  # every step is a sequence
    ],
)
def test_what_is_stored_is_what_a_plain_recorder_stores(actors, steps, longest, most, capacity, observe):
    stream = make_stream(0, actors, 8, steps, longest, observe)
    recordings, so_far = empty(stream, capacity, most), []
    completed = recorded(stream, most)
    for segment, new in zip(stream.segments(), completed, strict=True):
        recordings, largest = added(recordings, segment)
        so_far += new
        expect_stored(recordings, stream, so_far)
        returns = [abs(sum(stream.lives[s.actor][i].reward for i in s.numbers)) for s in new]
        np.testing.assert_allclose(largest, max(returns, default=0.0), rtol=1e-5, atol=1e-6)
        slots = np.concatenate([recordings.slots.writing, recordings.slots.ring])
        assert sorted(slots.tolist()) == list(range(actors + capacity)), "no slot is lost or given out twice"
    assert len(so_far) > capacity, "the ring went round"
    if most == 5:
        assert max(len(new) for new in completed) > 4 and any(s.late for s in so_far)


def test_pictures_stay_bytes_and_what_is_drawn_belongs_together():
    stream = make_stream(1, 3, 6, 5, 4, picture)
    recordings = empty(stream, 20, 3)
    for segment in stream.segments():
        recordings, _ = added(recordings, segment)
    assert recordings.frames.pixels.dtype == jnp.uint8 and recordings.frames.pixels.shape == (23, 3, 4, 5, 4)
    drawn = jax.jit(lambda r, k: r.sample(k, 200))(recordings, jax.random.key(0))
    sequences = list(itertools.chain(*recorded(stream, 3)))[-20:]
    expected = {
        np.asarray(stream.lives[s.actor][s.numbers[0]].observation.pixels).tobytes(): (
            [stream.lives[s.actor][i].action for i in s.numbers],
            sum(stream.lives[s.actor][i].reward for i in s.numbers),
        )
        for s in sequences
    }
    found = set()
    for b in range(200):
        first = np.asarray(drawn.observations.pixels[b, 0]).tobytes()
        actions, paid = expected[first]
        found.add(first)
        assert np.asarray(drawn.actions[b])[np.asarray(drawn.valid[b])].tolist() == actions
        np.testing.assert_allclose(drawn.returns[b], paid, rtol=1e-5, atol=1e-6)
    assert len(found) == 20, "all of them are drawn"


def test_steps_that_are_not_valid_may_hold_anything():
    ends = []
    for garbage in (True, False):
        stream = make_stream(2, 3, 4, 6, 4, garbage=garbage)
        recordings = empty(stream, 5, 3)
        for segment in stream.segments():
            if garbage:
                anything = ~segment.valid
                segment = dataclasses.replace(
                    segment, terminated=segment.terminated | anything, truncated=segment.truncated | anything
                )
            recordings, _ = added(recordings, segment)
        ends.append(recordings)
    for a, b in zip(*(jax.tree.leaves(r) for r in ends), strict=True):
        np.testing.assert_array_equal(a, b)
