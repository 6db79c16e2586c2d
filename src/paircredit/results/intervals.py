"""Intervals by the bootstrap: no number without one.

Written here and not taken from `scipy.stats.bootstrap`, which knows neither clusters of members that share something
nor draws within groups, and would change every number that was ever reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np

Groups = Sequence[np.ndarray]
RESAMPLES = 10_000
CONFIDENCE = 0.95
_NEVER = 1e15
"""Stands for inf in resampling, where inf minus inf would not be a number."""


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
    groups: Groups,
    statistic: Callable[..., np.ndarray],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    ends: Literal["linear", "inverted_cdf"] = "linear",
) -> Interval:
    """A percentile bootstrap of a statistic of one or several independent groups, which are resampled one by one.

    A two-dimensional group [clusters, members] is resampled by whole clusters, as is right where members share
    something random. The statistic takes an array per group and reduces its last axis, that of samples. The ends of the
    interval are found between two resampled values, or (`inverted_cdf`) as one of them.
    """
    generator = np.random.default_rng(seed)
    arrays = [np.asarray(group, dtype=float) for group in groups]
    clusters = [array.reshape(len(array), -1) for array in arrays]
    drawn = [
        group[generator.integers(0, len(group), size=(resamples, len(group)))].reshape(resamples, -1)
        for group in clusters
    ]
    values = statistic(*drawn)
    low, high = np.quantile(values, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], method=ends)
    return Interval(float(statistic(*(array.reshape(-1) for array in arrays))), float(low), float(high))


def difference_of(statistic: Callable[..., np.ndarray], first: Groups, second: Groups) -> Interval:
    """A statistic of the first groups minus that of the second."""

    def difference(*drawn: np.ndarray) -> np.ndarray:
        return np.asarray(statistic(*drawn[: len(first)]) - statistic(*drawn[len(first) :]))

    return bootstrap([*first, *second], difference)


def _mean(samples: np.ndarray) -> np.ndarray:
    return np.asarray(np.mean(samples, axis=-1))


def _median(samples: np.ndarray) -> np.ndarray:
    return np.asarray(np.median(samples, axis=-1))


def mean_interval(samples: np.ndarray) -> Interval:
    """The mean of one group."""
    return bootstrap([samples], _mean)


def median_interval(samples: np.ndarray) -> Interval:
    """The median of one group."""
    return bootstrap([samples], _median)


def mean_difference(first: np.ndarray, second: np.ndarray) -> Interval:
    """The mean of the first group minus that of the second."""
    return difference_of(_mean, [first], [second])


def median_difference(first: np.ndarray, second: np.ndarray) -> Interval:
    """The median of the first group minus that of the second."""
    return difference_of(_median, [first], [second])


def median_ratio(first: np.ndarray, second: np.ndarray) -> Interval:
    """The median of the first group over that of the second."""
    return bootstrap([first, second], lambda x, y: _median(x) / _median(y))


def median_of_times(members: np.ndarray) -> Interval:
    """The median of times with its interval, where a member that never got there (inf) is later than all others.

    An estimate or end of the interval is inf as soon as such a member has a part in it.
    """
    reached = np.isfinite(members)
    if reached.all():
        return median_interval(members)
    if not reached.any():
        return Interval(np.inf, np.inf, np.inf)
    latest = members[reached].max()
    replaced = median_interval(np.where(reached, members, _NEVER + latest))  # resampling cannot interpolate with inf
    return Interval(*(value if value <= latest else np.inf for value in replaced))


def difference_of_times(first: np.ndarray, second: np.ndarray) -> Interval:
    """The median time of the first group minus that of the second; inf or −inf where only one of them ever arrives.

    Where neither does, nothing can be said about their order: the difference counts as 0.
    """

    def difference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        late, early = (np.median(times, axis=-1) for times in (x, y))
        return np.asarray(np.where(late > _NEVER / 4, _NEVER, late) - np.where(early > _NEVER / 4, _NEVER, early))

    groups = [np.where(np.isfinite(times), times, _NEVER) for times in (first, second)]
    found = bootstrap(groups, difference, ends="inverted_cdf")
    return Interval(*(value if abs(value) < _NEVER / 4 else float(np.copysign(np.inf, value)) for value in found))


def mean_band(*groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The 95 % bootstrap interval of the mean over the members of all groups [M, U], at every point.

    Members are drawn within their group, and as `mean_interval` and `bootstrap` draw them: curves and tables agree.
    """
    means = sum(_resampled(groups, RESAMPLES)) / sum(len(group) for group in groups)
    low, high = np.quantile(means, [0.025, 0.975], axis=0)
    return low, high


def grouped_median_band(groups: Groups, resamples: int = 2_000) -> tuple[np.ndarray, np.ndarray]:
    """The 95 % bootstrap interval of the median over groups [M, U] of their means over members, at every point.

    Members are drawn within their group, and the groups are as they are.
    """
    means = [drawn / len(group) for drawn, group in zip(_resampled(groups, resamples), groups, strict=True)]
    low, high = np.quantile(np.median(means, axis=0), [0.025, 0.975], axis=0)
    return low, high


def _resampled(groups: Groups, resamples: int) -> Iterator[np.ndarray]:
    """The sums over members of every group, drawn again and again, [resamples, U]."""
    generator = np.random.default_rng(0)
    for group in groups:
        drawn = generator.integers(0, len(group), size=(resamples, len(group)))
        yield (drawn[:, :, None] == np.arange(len(group))).sum(axis=1) @ group
