"""Learning curves on Atari (appendix of the paper) and MinAtar: a panel per game."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from paircredit.analysis.game_results import GameCurves, all_games, method_labels
from paircredit.analysis.game_suites import Suite, name_of
from paircredit.analysis.shown import title
from paircredit.analysis.statistics import mean_band
from paircredit.figures.style import QUIET, Look, legend_above, looks, short, styled
from paircredit.runs.read import Run

MOST_POINTS = 60
"""Per curve; each is the mean over a part of training."""
RANDOM = "random play"
_COLUMNS, _MOST_COLUMNS, _MANY_GAMES = 3, 7, 12


@styled
def draw(runs: Sequence[Run], suite: Suite) -> Figure | None:
    """A panel per game with a curve per method: the return of a whole game against frames."""
    found = all_games(runs, suite)
    if not found:
        return None
    columns = min(_MOST_COLUMNS if len(found) > _MANY_GAMES else _COLUMNS, len(found))
    rows = math.ceil(len(found) / columns)
    width, height = (2.15, 1.75) if len(found) > _MANY_GAMES else (3.1, 2.35)
    figure = Figure(figsize=(max(width * columns + 0.4, 5.6), height * rows + 0.95), layout="constrained")
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    look = looks(method_labels(runs, suite))
    for axes, (game, methods) in zip(panels, found.items(), strict=False):
        for curves in methods.values():
            _curve(axes, curves, look[curves.label])
        axes.axhline(suite.random[game], color=QUIET, linewidth=1.1, linestyle="--", zorder=1, label=RANDOM)
        _finish(axes, name_of(game))
    for axes in panels[len(found) :]:
        axes.set_visible(False)
    figure.supxlabel("frames (millions)", fontsize=11)
    figure.supylabel("episode return", fontsize=11)
    legend_above(figure, last=RANDOM)
    return figure


def _curve(axes: Axes, curves: GameCurves, look: Look) -> None:
    frames, values = curves.thinned(MOST_POINTS)
    low, high = mean_band(values)
    axes.fill_between(frames / 1e6, low, high, color=look.colour, alpha=0.2, linewidth=0)
    axes.plot(frames / 1e6, values.mean(axis=0), color=look.colour, label=title(curves.label), **look.line)


def _finish(axes: Axes, text: str) -> None:
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda x, _: short(x)))
    axes.set_title(text, fontsize=11)
    axes.grid()
