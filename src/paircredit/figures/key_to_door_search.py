"""The search for A2C's λ and learning rate in Key-to-Door."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from paircredit.analysis.key_to_door_results import (
    LEARNED,
    SEARCH,
    Curves,
    all_curves,
    final_values,
    frames_to,
    pick_setting,
)
from paircredit.analysis.statistics import Interval, mean_interval, median_of_times
from paircredit.figures.style import styled
from paircredit.figures.tables import Column, Table
from paircredit.figures.times import logarithmic, moved, never_place
from paircredit.runs.read import Run

_MARKERS = ("o", "s", "^", "D")
_ASIDE = 0.15
"""Distance between learning rates; values of λ are 1 apart."""


@styled
def draw(runs: Sequence[Run]) -> Figure | None:
    """Over λ, a line per learning rate: median frames to a door reward of 9, and the final door reward."""
    found = _found(runs)
    if not found:
        return None
    lambdas = sorted({curves.variant[0] for curves in found})
    rates = sorted({curves.variant[1] for curves in found})
    figure = Figure(figsize=(9.8, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    medians = {curves.variant: median_of_times(frames_to(curves, LEARNED) / 1e6) for curves in found}
    ends = [end for interval in medians.values() for end in interval]
    never, shown = never_place([curves.trained / 1e6 for curves in found], ends)
    finals = {curves.variant: mean_interval(final_values(curves, "door_reward")) for curves in found}
    logarithmic(left, ends, shown, upright=True)
    for number, rate in enumerate(rates):
        aside = _ASIDE * (number - (len(rates) - 1) / 2)
        for axes, intervals in ((left, medians), (right, finals)):
            own = {variant[0]: interval for variant, interval in intervals.items() if variant[1] == rate}
            places = [lambdas.index(value) + aside for value in own]
            _draw_line(axes, places, list(own.values()), never, number / max(len(rates) - 1, 1), f"{rate:g}")
    for axes in (left, right):
        axes.set_xticks(range(len(lambdas)), [f"{value:g}" for value in lambdas])
        axes.set_xlabel("λ")
        axes.grid(axis="y")
    left.set_title(f"frames to a door reward of {LEARNED:g} (millions)", fontsize=11)
    right.set_title("final door reward", fontsize=11)
    right.set_ylim(-0.3, 10.3)
    handles, names = left.get_legend_handles_labels()
    figure.legend(handles, names, title="learning rate", loc="outside right center")
    return figure


def _draw_line(
    axes: Axes, places: list[float], intervals: list[Interval], never: float, shade: float, name: str
) -> None:
    """Bars for intervals, markers for estimates, joined where they exist; hollow markers where there is none."""
    colour = colormaps["viridis"](0.85 * shade)
    marker = _MARKERS[round(shade * (len(_MARKERS) - 1))]
    estimates = np.array([interval.estimate for interval in intervals])
    reached = np.isfinite(estimates)
    ends = [moved(interval, never) for interval in intervals]
    axes.vlines(places, [end.low for end in ends], [end.high for end in ends], color=colour, alpha=0.4, linewidth=4)
    style: dict[str, Any] = {"marker": marker, "color": colour, "markersize": 6}
    axes.plot(places, np.where(reached, estimates, np.nan), linewidth=1.3, label=name, **style)
    late = [place for place, arrived in zip(places, reached, strict=True) if not arrived]
    axes.plot(late, [never] * len(late), linestyle="", markerfacecolor="white", zorder=4, **style)


def table(runs: Sequence[Run]) -> Table | None:
    """A row per learning rate and λ."""
    found = _found(runs)
    if not found:
        return None
    rows = []
    for curves in sorted(found, key=lambda c: (c.variant[1], c.variant[0])):
        times = frames_to(curves, LEARNED)
        numbers = (len(times), int(np.isfinite(times).sum()), *median_of_times(times))
        rows.append(
            (curves.variant[1], curves.variant[0], *numbers, *mean_interval(final_values(curves, "door_reward")))
        )
    columns = (
        Column("learning_rate", "learning rate", "g"),
        Column("lambda", "λ", "g"),
        Column("seeds", "seeds"),
        Column("reached_9", "seeds at 9"),
        Column("frames_to_9", "frames to 9", ",.0f"),
        Column("frames_to_9_low", "from", ",.0f"),
        Column("frames_to_9_high", "to", ",.0f"),
        Column("final_door_reward", "final door reward", ".2f"),
        Column("final_door_reward_low", "from", ".2f"),
        Column("final_door_reward_high", "to", ".2f"),
    )
    return Table(columns, tuple(rows))


def _found(runs: Sequence[Run]) -> list[Curves]:
    found = all_curves(runs, SEARCH)
    setting = pick_setting([curves.setting for curves in found])
    return [curves for curves in found if curves.setting == setting]
