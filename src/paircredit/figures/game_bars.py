"""Meta-PWTD beside A2C: relative performance game by game, and the median human-normalised score over games."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FuncFormatter, MaxNLocator

from paircredit.analysis.game_comparisons import BASELINE, OURS, Comparison, MedianCurve, comparisons, median_curves
from paircredit.analysis.game_results import all_games, method_labels
from paircredit.analysis.game_suites import Suite, name_of
from paircredit.analysis.shown import title
from paircredit.figures.style import COLOURS, QUIET, Look, legend_above, looks, styled
from paircredit.runs.read import Run

_FAR, _LINEAR = 150.0, 10.0
"""Per cent beyond which a difference asks for a logarithmic axis, and up to which that is linear."""
_FEW = 8
"""Games whose names have room beside each other."""
_HALO = withStroke(linewidth=2.8, foreground="#ffffff")
"""Around intervals, which otherwise could not be seen on dark bars."""
_NEITHER = "#c9c9c9"
_FILLS = {"better": COLOURS[OURS], "worse": COLOURS[BASELINE], "tie": _NEITHER, "open": "#ffffff"}
_WORDS = {
    "better": f"{title(OURS)} is better",
    "worse": f"{title(BASELINE)} is better",
    "tie": "tie: the interval contains 0",
    "open": "too few seeds to tell",
}


@styled
def draw(runs: Sequence[Run], suite: Suite) -> Figure | None:
    """A bar per game, sorted; below it, where there are human scores, the median over games against frames."""
    found = all_games(runs, suite)
    compared = sorted(comparisons(found, suite), key=lambda own: own.relative.estimate)
    if not compared:
        return None
    medians = median_curves(found, suite) if suite.human else []
    width = min(max(0.21 * len(compared) + 1.4, 6.4), 12.0)
    figure = Figure(figsize=(width, 4.4 + (2.9 if medians else 0.0)), layout="constrained")
    heights = (4.4, 2.9) if medians else (4.4,)
    bars, *below = figure.subplots(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    _bars(bars, compared)
    legend_above(figure)  # before there are curves, which have a legend of their own
    for axes in below:
        _curves(axes, medians, looks(method_labels(runs, suite)))
    return figure


def _bars(axes: Axes, compared: Sequence[Comparison]) -> None:
    crowded = len(compared) > _FEW
    for outcome, fill in _FILLS.items():
        places = [place for place, own in enumerate(compared) if own.outcome == outcome]
        if places:
            heights = [100 * compared[place].relative.estimate for place in places]
            name, width = f"{_WORDS[outcome]} ({len(places)})", 0.78 if crowded else 0.55
            axes.bar(places, heights, width, color=fill, edgecolor=QUIET, linewidth=0.7, label=name)
    for place, own in enumerate(compared):
        ends = [100 * own.relative.low, 100 * own.relative.high]
        axes.plot([place, place], ends, color="#1a1a1a", linewidth=1.2, path_effects=[_HALO], solid_capstyle="butt")
    sizes = np.abs([100 * value for own in compared for value in own.relative])
    if sizes.max() > _FAR:
        axes.set_yscale("symlog", linthresh=_LINEAR)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:+g} %".replace("-", "−") if x else "0 %"))
    axes.axhline(0, color="#1a1a1a", linewidth=0.9)
    axes.set_xticks(
        range(len(compared)),
        [name_of(own.game) for own in compared],
        rotation=90 if crowded else 0,
        fontsize=9 if crowded else 10,
    )
    axes.set_xlim(-0.7, len(compared) - 0.3)
    axes.tick_params(axis="x", length=0)
    axes.set_title(f"Relative performance of {title(OURS)} over {title(BASELINE)}", fontsize=11)
    axes.grid(axis="y")


def _curves(axes: Axes, medians: Sequence[MedianCurve], look: dict[str, Look]) -> None:
    for curve in medians:
        own = look[curve.label]
        axes.fill_between(curve.frames / 1e6, curve.low, curve.high, color=own.colour, alpha=0.2, linewidth=0)
        axes.plot(curve.frames / 1e6, curve.median, color=own.colour, label=title(curve.label), **own.line)
    games = medians[0].games
    axes.set_xlim(left=0)
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.set_title(f"Median human-normalised score of {games} game{'s' * (games > 1)}", fontsize=11)
    axes.set_xlabel("frames (millions)")
    axes.legend(loc="best", handlelength=2.4)
    axes.grid()
