"""Temporal value transport: cases by hand, and a plain loop over lists of reads as the published code describes it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paircredit.estimators import transported_values
from paircredit.estimators.transport import recency_window
from tests.sentences import refused

compiled = jax.jit(transported_values)


@pytest.mark.parametrize(
    "discount, steps", [(0.92, 12), (0.9, 10), (0.99, 100), (0.998, 500), (0.96, 25), (0.5, 2), (0.0, 1), (1.0, 25)]
)
def test_the_window_is_the_horizon_of_the_discount(discount, steps):
    assert recency_window(discount) == steps
    assert jax.jit(recency_window)(discount) == steps


class TestByHand:
    """120 steps, a window of 12, α = 0.9; where nothing else is said heads read the step before, weakly."""

    VALUES = np.linspace(1.0, 2.0, 120, dtype=np.float32)

    def reads(self, heads: int = 1, rows: int = 120) -> tuple[np.ndarray, np.ndarray]:
        weights = np.zeros((120, heads, rows), dtype=np.float32)
        weights[np.arange(1, 120), :, np.arange(119)] = 1.0
        weights[0, :, 0] = 1.0
        return weights, np.full((120, heads), 0.5, dtype=np.float32)

    def look(self, reads, step: int, at: dict[int, float], strength: float, head: int = 0) -> None:
        weights, strengths = reads
        weights[step, head] = 0.0
        for row, weight in at.items():
            weights[step, head, row] = weight
        strengths[step, head] = strength

    def bonus(self, reads, *, threshold: float = 1.0, valid: np.ndarray | None = None) -> np.ndarray:
        valid = np.ones(120, dtype=bool) if valid is None else valid
        return np.asarray(compiled(*reads, self.VALUES, 12, threshold, 0.9, valid))

    def expect(self, actual: np.ndarray, expected: dict[int, float]) -> None:
        full = np.zeros(120)
        for step, number in expected.items():
            full[step] = number
        np.testing.assert_allclose(actual, full, rtol=1e-6)

    def test_a_strong_read_of_the_distant_past_carries_value_there_and_nowhere_else(self):
        reads = self.reads()
        self.look(reads, 110, {5: 1.0}, 3.0)
        self.expect(self.bonus(reads), {5: 0.9 * self.VALUES[110]})

    def test_a_weak_read_carries_nothing(self):
        reads = self.reads()
        self.look(reads, 110, {5: 1.0}, 1.0)
        self.expect(self.bonus(reads), {})
        self.expect(self.bonus(reads, threshold=0.99), {5: 0.9 * self.VALUES[110]})

    @pytest.mark.parametrize("lag, counts", [(12, False), (13, True), (1, False)])
    def test_a_read_within_the_window_carries_nothing(self, lag, counts):
        reads = self.reads()
        self.look(reads, 60, {60 - lag: 1.0}, 3.0)
        self.expect(self.bonus(reads), {60 - lag: 0.9 * self.VALUES[60]} if counts else {})

    def test_of_a_read_that_counts_the_recent_part_is_left_out(self):
        reads = self.reads(rows=170)
        self.look(reads, 60, {5: 0.4, 20: 0.2, 50: 0.3, 119: 0.05, 150: 0.05}, 3.0)
        self.expect(self.bonus(reads), {5: 0.9 * 0.4 * self.VALUES[60], 20: 0.9 * 0.2 * self.VALUES[60]})

    @pytest.mark.parametrize("row", [50, 61, 150])
    def test_a_read_whose_largest_part_is_recent_or_not_written_yet_carries_nothing(self, row):
        reads = self.reads(rows=170)
        self.look(reads, 60, {5: 0.4, row: 0.6}, 3.0)
        self.expect(self.bonus(reads), {})

    def test_heads_add_up(self):
        reads = self.reads(heads=3)
        self.look(reads, 110, {5: 1.0}, 3.0, head=0)
        self.look(reads, 100, {5: 0.5, 7: 0.5}, 2.0, head=2)
        first, second = 0.9 * self.VALUES[110], 0.45 * self.VALUES[100]
        self.expect(self.bonus(reads), {5: first + second, 7: second})

    def test_a_run_counts_once_at_its_strongest_step(self):
        reads = self.reads()
        for step, strength in {80: 1.5, 81: 4.0, 82: 2.0, 84: 1.2, 85: 1.2}.items():
            self.look(reads, step, {step - 70: 1.0}, strength)
        self.expect(self.bonus(reads), {11: 0.9 * self.VALUES[81], 14: 0.9 * self.VALUES[84]})

    def test_a_recent_read_splits_a_run(self):
        reads = self.reads()
        for step, row in {80: 10, 81: 79, 82: 12}.items():
            self.look(reads, step, {row: 1.0}, 3.0)
        self.expect(self.bonus(reads), {10: 0.9 * self.VALUES[80], 12: 0.9 * self.VALUES[82]})

    def test_a_run_that_is_open_at_the_end_counts(self):
        reads = self.reads()
        for step, strength in {117: 2.0, 118: 3.0, 119: 4.0}.items():
            self.look(reads, step, {step - 100: 1.0}, strength)
        self.expect(self.bonus(reads), {19: 0.9 * self.VALUES[119]})
        self.expect(self.bonus(reads, valid=np.arange(120) < 119), {18: 0.9 * self.VALUES[118]})


def bonus_of_lists(weights, times, strengths, values, valid, window, threshold, alpha):
    """What the published code does, from its description: for every head, event after event, read after read."""
    length, heads = strengths.shape
    bonus = np.zeros(length)
    for head in range(heads):
        events, best = [], None
        for t in range(length):
            recent = t - times[t, head, np.argmax(weights[t, head])] <= window
            strength = 0.0 if recent else strengths[t, head]
            if valid[t] and strength > threshold:
                if best is None or strength > best[0]:
                    best = (strength, t)
            elif best is not None:
                events.append(best[1])
                best = None
        if best is not None:
            events.append(best[1])
        for t in events:
            for weight, row in zip(weights[t, head], times[t, head], strict=True):
                if t - row > window:
                    bonus[row] += alpha * weight * values[t]
    return bonus


LENGTH, HEADS, ROWS, READS = 30, 2, 36, 5


@given(
    seed=st.integers(0, 2**32 - 1),
    window=st.integers(0, 12),
    threshold=st.sampled_from([0.5, 1.0, 2.0]),
    ends=st.integers(1, LENGTH),
    ties=st.booleans(),
)
def test_a_loop_over_lists_agrees_whatever_lies_in_the_padding(seed, window, threshold, ends, ties):
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.full(READS, 0.5), size=(LENGTH, HEADS)).astype(np.float32)
    written = np.arange(LENGTH)[:, None, None] + READS  # rows not written yet are read, too
    times = np.argsort(rng.random((LENGTH, HEADS, ROWS)) + (np.arange(ROWS) >= written), axis=-1)[..., :READS]
    strengths = rng.gamma(2.0, 1.0, size=(LENGTH, HEADS)).astype(np.float32)
    strengths = np.ceil(strengths) if ties else strengths
    values = rng.normal(size=LENGTH).astype(np.float32)
    valid = np.arange(LENGTH) < ends
    dense = np.zeros((LENGTH, HEADS, ROWS), dtype=np.float32)
    np.put_along_axis(dense, times, weights, axis=-1)

    expected = bonus_of_lists(weights, times, strengths, values, valid, window, threshold, 0.7)
    dense[~valid], strengths[~valid], values[~valid] = np.nan, np.inf, np.nan
    actual = compiled(dense, strengths, values, window, threshold, 0.7, valid)
    np.testing.assert_allclose(actual, expected, atol=1e-5)
    assert window > 8 or ends < 20 or threshold == 2.0 or np.any(expected), "most of these episodes transport something"


def test_shapes_are_refused(users_view):
    weights, strengths, values = jnp.ones((4, 2, 4)), jnp.ones((4, 2)), jnp.ones(4)
    with refused("read_weights", "(4, 2, 3)", "4 steps"):
        transported_values(weights[:, :, :3], strengths, values, 1, 1.0, 0.9)
    with refused("strengths", "(4, 1)", "(4, 2)"):
        transported_values(weights, strengths[:, :1], values, 1, 1.0, 0.9)
    with refused("valid", "(3,)"):
        transported_values(weights, strengths, values, 1, 1.0, 0.9, jnp.ones(3, dtype=bool))
