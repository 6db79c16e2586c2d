"""Marks for times until something is learned: the median, its interval, and every member, with a place for never."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullLocator

from paircredit.analysis.statistics import Interval
from paircredit.figures.style import QUIET, Look

_TICKS = (
    (12.0, (1, 2, 5)),
    (3.0, (1, 1.5, 2, 3, 4, 5, 6, 8)),
    (0.0, (1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9)),
)
"""Ticks of logarithmic axes within a power of ten, by the factor that the axis spans at least."""


def draw_members(axes: Axes, place: float, members: np.ndarray, interval: Interval, look: Look, name: str) -> None:
    """One line of a chart whose x axis measures: dots for members, a bar for the interval, a marker for the median.

    Args:
        axes: where.
        place: y.
        members: x of each.
        interval: of their median (or mean).
        look: of the method.
        name: for the legend.
    """
    axes.plot([interval.low, interval.high], [place, place], color=look.colour, linewidth=7, alpha=0.3, zorder=2)
    axes.lines[-1].set_solid_capstyle("butt")
    axes.plot(members, np.full(len(members), place), "o", color=look.colour, alpha=0.5, markersize=2.6, mew=0, zorder=3)
    axes.plot(
        [interval.estimate],
        [place],
        look.marker,
        color=look.colour,
        markersize=6,
        markeredgecolor="white",
        markeredgewidth=0.7,
        label=name,
        zorder=4,
        clip_on=False,
    )


def moved(interval: Interval, never: float) -> Interval:
    """The interval with its infinite parts at `never`."""
    return Interval(*(value if np.isfinite(value) else never for value in interval))


def logarithmic(axes: Axes, times: Sequence[float], never: float | None, *, upright: bool = False) -> None:
    """A logarithmic axis from the earliest time on, with round ticks; never is a dotted line at its end.

    Args:
        axes: where.
        times: that are shown, in all; those that are infinite do not count.
        never: where they stand, or None where there are none.
        upright: whether times are measured by the y axis.
    """
    finite = [time for time in times if np.isfinite(time)] or [1.0 if never is None else never / 2]
    earliest, latest = min(finite), max(finite)
    low, high = earliest / 1.2, latest * 1.2 if never is None else never * 1.2
    factors = next(factors for span, factors in _TICKS if high / low > span)
    ticks = [factor * 10.0**power for power in range(-4, 4) for factor in factors]
    axis = axes.yaxis if upright else axes.xaxis
    (axes.set_yscale if upright else axes.set_xscale)("log")
    (axes.set_ylim if upright else axes.set_xlim)(low, high)
    axis.set_major_locator(FixedLocator([tick for tick in ticks if low <= tick <= max(latest * 1.02, high / 1.6)]))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter("{x:g}")
    if never is not None:
        (axes.axhline if upright else axes.axvline)(never, color=QUIET, linewidth=0.9, linestyle=":", zorder=1)
        axes.annotate(
            "not reached",
            (1, never) if upright else (never, 1),
            xycoords=axes.get_yaxis_transform() if upright else axes.get_xaxis_transform(),
            xytext=(3, 0) if upright else (0, 3),
            textcoords="offset points",
            fontsize=9,
            ha="left" if upright else "center",
            va="center" if upright else "bottom",
            color="#555555",
        )


def never_place(trained: Sequence[float], times: Sequence[float]) -> tuple[float, float | None]:
    """Where those stand that never got there: a bit behind the longest training; and None if there are none."""
    place = 1.2 * max(trained)
    return place, None if np.isfinite(times).all() else place
