"""Meta-PWTD beside A2C: relative performance game by game, and the median human-normalised score over games."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator

from paircredit.analysis.game_comparisons import BASELINE, OURS, Comparison, MedianCurve, comparisons, median_curves
from paircredit.analysis.game_results import all_games, method_labels
from paircredit.analysis.game_suites import Suite, name_of
from paircredit.analysis.shown import title
from paircredit.figures.style import COLOURS, QUIET, Look, looks, styled
from paircredit.runs.read import Run

_LINEAR = 10.0
"""Per cent up to which the axis is linear; beyond, equal steps are equal factors."""
_NEITHER = "#c9c9c9"
_FILLS = {"better": COLOURS[OURS], "worse": COLOURS[BASELINE], "tie": _NEITHER, "open": "#ffffff"}
_WORDS = {
    "better": f"{title(OURS)} is better",
    "worse": f"{title(BASELINE)} is better",
    "tie": "a tie: the interval contains 0",
    "open": "too few seeds to tell",
}


@styled
def draw(runs: Sequence[Run], suite: Suite) -> Figure | None:
    """A bar per game, sorted; below it, where there are human scores, the median over games against frames."""
    found = all_games(runs, suite)
    compared = sorted(comparisons(found, suite), key=lambda own: own.relative.estimate)
    if not compared:
        return None
    games, medians = median_curves(found, suite) if suite.human else ([], [])
    width = min(max(0.21 * len(compared) + 1.4, 6.4), 12.0)
    figure = Figure(figsize=(width, 4.4 + (2.9 if medians else 0.0)), layout="constrained")
    if medians:
        bars, curves = figure.subplots(2, 1, height_ratios=(4.4, 2.9))
        _curves(curves, medians, len(games), looks(method_labels(runs, suite)))
    else:
        bars = figure.subplots()
    _bars(bars, compared)
    return figure


def _bars(axes: Axes, compared: Sequence[Comparison]) -> None:
    for place, own in enumerate(compared):
        estimate, low, high = (100 * value for value in own.relative)
        axes.bar(place, estimate, 0.78, color=_FILLS[own.outcome], edgecolor=QUIET, linewidth=0.7)
        axes.plot([place, place], [low, high], color="#1a1a1a", linewidth=1.1, alpha=0.8)
    ends = np.abs([100 * value for own in compared for value in own.relative])
    if ends.max() > 5 * _LINEAR:
        axes.set_yscale("symlog", linthresh=_LINEAR)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:+g} %".replace("-", "−") if x else "0 %"))
    axes.axhline(0, color="#1a1a1a", linewidth=0.9)
    crowded = len(compared) > 8
    axes.set_xticks(
        range(len(compared)),
        [name_of(own.game) for own in compared],
        rotation=90 if crowded else 0,
        fontsize=9 if crowded else 10,
    )
    axes.set_xlim(-0.7, len(compared) - 0.3)
    axes.tick_params(axis="x", length=0)
    axes.set_title(f"Relative performance of {title(OURS)} over {title(BASELINE)}", fontsize=11, pad=24)
    shown = [outcome for outcome in _FILLS if any(own.outcome == outcome for own in compared)]
    axes.legend(
        [Patch(facecolor=_FILLS[outcome], edgecolor=QUIET, linewidth=0.7) for outcome in shown],
        [f"{_WORDS[outcome]} ({sum(own.outcome == outcome for own in compared)})" for outcome in shown],
        loc="lower left",
        bbox_to_anchor=(0, 1.0),
        ncols=3,
        borderaxespad=0.2,
        columnspacing=1.4,
        handlelength=1.4,
    )
    axes.grid(axis="y")


def _curves(axes: Axes, medians: Sequence[MedianCurve], games: int, look: dict[str, Look]) -> None:
    for curve in medians:
        own = look[curve.label]
        axes.fill_between(curve.frames / 1e6, curve.low, curve.high, color=own.colour, alpha=0.2, linewidth=0)
        axes.plot(curve.frames / 1e6, curve.median, color=own.colour, label=title(curve.label), **own.line)
    axes.set_xlim(left=0)
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.set_title(f"Median human-normalised score of {games} game{'s' * (games > 1)}", fontsize=11)
    axes.set_xlabel("frames (millions)")
    axes.legend(loc="best", handlelength=2.4)
    axes.grid()
