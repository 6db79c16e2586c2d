"""Intervals and thresholds against hand numbers and known coverage."""

import numpy as np
import pytest

from paircredit.results.curves import first_time
from paircredit.results.intervals import (
    bootstrap,
    grouped_median_band,
    interquartile_mean,
    mean_interval,
    median_difference,
    median_ratio,
)


def test_interquartile_mean_by_hand() -> None:
    assert interquartile_mean(np.array([0.0, 1.0, 2.0, 100.0])) == 1.5
    np.testing.assert_allclose(interquartile_mean(np.array([5.0, 1.0, 3.0])), (0.25 * 1 + 1 * 3 + 0.25 * 5) / 1.5)


def test_a_mean_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    generator = np.random.default_rng(0)
    inside = 0
    for _ in range(200):
        interval = bootstrap(
            [generator.normal(3.0, 1.0, size=30)], lambda x: np.mean(x, axis=-1), resamples=500, seed=1
        )
        inside += interval.low <= 3.0 <= interval.high
    assert 0.88 <= inside / 200 <= 0.99


def test_a_constant_sample_has_an_interval_of_width_zero() -> None:
    assert mean_interval(np.full(5, 7.0)) == (7.0, 7.0, 7.0)


def test_differences_and_ratios_of_medians() -> None:
    small, large = np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0, 30.0])
    assert median_difference(small, large).estimate == -18.0
    assert median_difference(small, large).high < 0
    assert median_ratio(large, small).estimate == 10.0


def test_episodes_to_threshold_takes_the_first_crossing_and_knows_never() -> None:
    episodes = np.array([0, 8, 16, 24])
    returns = np.array([[0.0, 0.96, 0.5, 1.0], [0.0, 0.1, 0.2, 0.3], [0.95, 0.0, 0.0, 0.0]])
    np.testing.assert_array_equal(first_time(episodes, returns, 0.95), [8.0, np.inf, 0.0])


def test_a_band_of_medians_over_groups_draws_members_and_not_groups() -> None:
    """Members of the middle group differ; the others are far away and never the median."""
    middle = np.random.default_rng(1).normal(size=(6, 2))
    groups = [np.full((3, 2), -100.0), middle, np.full((5, 2), 100.0)]
    low, high = grouped_median_band(groups, resamples=10_000)
    for point in range(2):
        interval = mean_interval(middle[:, point])
        assert (low[point], high[point]) == pytest.approx((interval.low, interval.high), abs=0.05)
