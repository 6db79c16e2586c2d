"""Intervals: no number without one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

RESAMPLES = 10_000


class Interval(NamedTuple):
    """An estimate with a 95 % interval."""

    estimate: float
    low: float
    high: float

    def text(self, form: str = ".0f") -> str:
        """`estimate [low, high]`."""
        return f"{self.estimate:{form}} [{self.low:{form}}, {self.high:{form}}]"


def interquartile_mean(samples: np.ndarray, axis: int = -1) -> np.ndarray:
    """The mean of the middle half, weighing the entries at its edges by their share."""
    ordered = np.moveaxis(np.sort(samples, axis=axis), axis, -1)
    count = ordered.shape[-1]
    edges = np.arange(count + 1) / count
    share = np.clip(np.minimum(edges[1:], 0.75) - np.maximum(edges[:-1], 0.25), 0.0, None) * 2
    return np.asarray(ordered @ share)


def bootstrap(
    groups: Sequence[np.ndarray],
    statistic: Callable[..., np.ndarray],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    confidence: float = 0.95,
) -> Interval:
    """A percentile bootstrap of a statistic of one or several independent groups.

    Args:
        groups: one array of samples per group, resampled group by group. A two-dimensional array [clusters, members]
            is resampled by whole clusters, as is right where members share something random.
        statistic: takes one array per group, the samples in the last axis, and reduces that axis.
        seed: of the resampling, so that a report says the same twice.
        resamples: how many.
        confidence: of the interval.
    """
    generator = np.random.default_rng(seed)
    arrays = [np.asarray(group, dtype=float) for group in groups]
    clusters = [array.reshape(len(array), -1) for array in arrays]
    drawn = [
        group[generator.integers(0, len(group), size=(resamples, len(group)))].reshape(resamples, -1)
        for group in clusters
    ]
    values = statistic(*drawn)
    low, high = np.quantile(values, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(float(statistic(*(array.reshape(-1) for array in arrays))), float(low), float(high))


def mean_interval(samples: np.ndarray) -> Interval:
    """The mean of one group."""
    return bootstrap([samples], lambda x: np.mean(x, axis=-1))


def median_interval(samples: np.ndarray) -> Interval:
    """The median of one group."""
    return bootstrap([samples], lambda x: np.median(x, axis=-1))


def median_difference(first: np.ndarray, second: np.ndarray) -> Interval:
    """The median of the first group minus that of the second."""
    return bootstrap([first, second], lambda x, y: np.median(x, axis=-1) - np.median(y, axis=-1))


def median_ratio(first: np.ndarray, second: np.ndarray) -> Interval:
    """The median of the first group over that of the second."""
    return bootstrap([first, second], lambda x, y: np.median(x, axis=-1) / np.median(y, axis=-1))
