"""Sequences of a stream: where they start, how far they are, where they end."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from paircredit.estimators.redistribution import mark_sequences

mark = jax.jit(mark_sequences, static_argnums=3)


def marked(valid: str, ends: str, length: int = 0, most: int = 4):
    """Marks of a segment that is spelled with a character per step; `1` is true."""
    found = mark(jnp.array([c == "1" for c in valid]), jnp.array([c == "1" for c in ends]), jnp.asarray(length), most)
    starts, closes = ("".join("01"[int(x)] for x in row) for row in (found.starts, found.closes))
    return found.position.tolist(), starts, closes, int(found.length)


def test_an_episode_with_a_step_to_start_again_after_it():
    assert marked("1110111", "0010000") == ([0, 1, 2, 0, 0, 1, 2], "1000100", "0010000", 3)


def test_an_end_for_learning_alone():
    assert marked("111111", "010001") == ([0, 1, 0, 1, 2, 3], "101000", "010001", 0)


def test_a_long_episode_is_cut_where_a_sequence_is_full():
    assert marked("11111", "00000", length=3) == ([3, 0, 1, 2, 3], "01000", "10001", 0)
    assert marked("1111", "0001", length=2, most=100) == ([2, 3, 4, 5], "0000", "0001", 0)


def test_a_cut_that_only_the_next_segment_shows():
    """The running sequence is complete; where none runs, the step to start again completes nothing."""
    assert marked("0111", "0000", length=2) == ([0, 0, 1, 2], "0100", "1000", 3)
    assert marked("0111", "0000") == ([0, 0, 1, 2], "0100", "0000", 3)


def test_ends_at_steps_that_are_not_valid_mean_nothing():
    assert marked("110011", "011110", length=1) == marked("110011", "010010", length=1)


@given(st.sampled_from([1, 4, 12]), st.sampled_from([1, 3, 5]), st.data())
def test_against_counting(count, most, data):
    steps = data.draw(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=count, max_size=count))
    length = before = data.draw(st.integers(0, most - 1))
    position, starts, closes = [], "", ""
    for valid, end in steps:
        position.append(length if valid else 0)
        starts += "01"[valid and length == 0]
        full = length + 1 == most
        closes += "01"[end or full if valid else length > 0]
        length = length + 1 if valid and not (end or full) else 0
    text = ("".join("01"[x] for x in column) for column in zip(*steps, strict=True))
    assert marked(*text, before, most) == (position, starts, closes, length)


def test_nothing_is_lost_between_segments():
    """A stream in one piece and in segments of any length has the same marks."""
    valid, ends = "11101111111111011101", "00100000100001000100"
    whole = marked(valid, ends)
    for size in (1, 3, 7):
        length, parts = 0, []
        for at in range(0, len(valid), size):
            *part, length = marked(valid[at : at + size], ends[at : at + size], length)
            parts.append(part)
        assert list(itertools.chain(*(p[0] for p in parts))) == whole[0] and length == whole[3]
        assert ["".join(p[i] for p in parts) for i in (1, 2)] == list(whole[1:3])
    assert np.max(whole[0]) == 3
