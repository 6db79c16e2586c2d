"""How long each method takes to learn the DAG (Figure 2, right, of the paper)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from paircredit.analysis.dag_results import (
    LABELS,
    TITLES,
    by_table,
    depths,
    evaluation_times,
    learning_curves,
    pick,
    sampled_times,
)
from paircredit.analysis.statistics import Interval, median_of_times
from paircredit.figures.style import COLOURS, MARKERS, QUIET, styled
from paircredit.figures.tables import Column, Table
from paircredit.runs.read import Run

_BESIDE = 0.19
"""Distance between methods; depths are 1 apart."""


@dataclasses.dataclass(frozen=True)
class Times:
    """Episodes to 95 % of the best return, of one method at one depth.

    Attributes:
        depth: of the DAG.
        label: of the method.
        members: episodes of each member, inf where it never got there.
        median: of them; members that share a table of learned weights are resampled together.
        sampled_median: the median by the returns of training batches, averaged over ten.
        trained: how many episodes there were.
    """

    depth: int
    label: str
    members: np.ndarray
    median: Interval
    sampled_median: float
    trained: int


@styled
def draw(runs: Sequence[Run]) -> Figure | None:
    """Median, interval and members of every method, side by side at every depth."""
    times = _times(runs)
    if not times:
        return None
    places = {depth: place for place, depth in enumerate(sorted({entry.depth for entry in times}))}
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    reached = [value for entry in times for value in entry.members if np.isfinite(value)]
    never = max(entry.trained for entry in times) * 1.04
    for entry in times:
        offset = (LABELS.index(entry.label) - (len(LABELS) - 1) / 2) * _BESIDE
        _draw_times(axes, entry, places[entry.depth] + offset, never)
    if any(np.isinf(entry.members).any() for entry in times):
        axes.axhline(never, color=QUIET, linewidth=0.8, linestyle=":", zorder=0)
        axes.text(-0.5, never * 1.07, "never, in all of training", color="#555555", fontsize=9, va="bottom")
        axes.set_ylim(0, never * 1.14)
    else:
        axes.set_ylim(0, max(reached) * 1.06)
    axes.set_xlim(-0.55, len(places) - 0.45)
    axes.set_xticks(list(places.values()), [f"depth {depth}" for depth in places])
    axes.tick_params(axis="x", length=0)
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.grid(axis="y")
    axes.set_ylabel("episodes to 95 % of the best return")
    handles, names = axes.get_legend_handles_labels()
    unique = dict(zip(names, handles, strict=True))
    figure.legend(unique.values(), unique.keys(), loc="outside upper center", ncols=len(unique), markerscale=1.5)
    return figure


def table(runs: Sequence[Run]) -> Table | None:
    """A row per depth and method."""
    times = _times(runs)
    if not times:
        return None
    return Table(
        (
            Column("depth", "depth"),
            Column("method", "method"),
            Column("members", "members"),
            Column("reached", "reached 95 %"),
            Column("median_episodes", "median episodes", ",.0f"),
            Column("low", "95 % interval, from", ",.0f"),
            Column("high", "to", ",.0f"),
            Column("median_by_batches", "median, by training batches", ",.0f"),
        ),
        tuple(
            (
                entry.depth,
                TITLES[entry.label],
                len(entry.members),
                int(np.isfinite(entry.members).sum()),
                *entry.median,
                entry.sampled_median,
            )
            for entry in times
        ),
    )


def _times(runs: Sequence[Run]) -> list[Times]:
    times = []
    for depth in depths(runs, "evaluation"):
        for label in LABELS:
            run = pick(runs, "evaluation", depth, label)
            if run is not None:
                members, trained = evaluation_times(run), int(learning_curves(run).episodes[-1])
                median = median_of_times(by_table(run, members))
                times.append(Times(depth, label, members, median, float(np.median(sampled_times(run))), trained))
    return times


def _draw_times(axes: Axes, entry: Times, place: float, never: float) -> None:
    colour = COLOURS[entry.label]
    ordered = np.sort(entry.members)
    sideways = place + 0.065 + 0.02 * (np.arange(len(ordered)) % 2)
    axes.plot(
        sideways, np.where(np.isfinite(ordered), ordered, never), "o", color=colour, alpha=0.55, markersize=3, mew=0
    )
    low, high = min(entry.median.low, never), min(entry.median.high, never)
    axes.plot([place, place], [low, high], color=colour, linewidth=12, alpha=0.3, solid_capstyle="butt")
    axes.plot(
        [place],
        [min(entry.median.estimate, never)],
        MARKERS[entry.label],
        color=colour,
        markersize=5.5,
        markeredgecolor="white",
        markeredgewidth=0.6,
        label=TITLES[entry.label],
    )
    missing = int(np.isinf(entry.members).sum())
    if missing:
        axes.annotate(
            f"{missing} of {len(entry.members)}",
            (place, never),
            xytext=(10, 6),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=8,
            color=colour,
        )
