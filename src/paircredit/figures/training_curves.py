"""Learning curves of runs of `paircredit train`, on whichever environment, and what they end with."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from paircredit.analysis.own_runs import OwnRun, own_runs
from paircredit.analysis.recorded import RETURN, Recorded
from paircredit.analysis.shown import in_order, title
from paircredit.analysis.statistics import mean_band, mean_interval
from paircredit.figures.style import Look, legend_above, looks, short, styled
from paircredit.figures.tables import Cell, Column, Table
from paircredit.runs.read import Run

MOST_POINTS = 100
"""Per curve; each is the mean over a part of training."""
_MOST_COLUMNS = 4


@styled
def draw(runs: Sequence[Run]) -> Figure | None:
    """A panel per environment and quantity with a curve per run, against frames."""
    shown = [own for own in own_runs(runs) if own.curves]
    if not shown:
        return None
    panels = dict.fromkeys(
        (own.place, name) for own in shown for name, curves in own.curves.items() if name == RETURN or _moves(curves)
    )
    one_place = len({place for place, _ in panels}) == 1
    in_a_square = min(math.ceil(len(panels) ** 0.5), _MOST_COLUMNS)
    columns = len(panels) if len(panels) <= _MOST_COLUMNS else in_a_square
    rows = math.ceil(len(panels) / columns)
    figure = Figure(figsize=(max(3.3 * columns + 0.4, 6.4), 2.7 * rows + 0.9), layout="constrained")
    axes_of = list(figure.subplots(rows, columns, squeeze=False).flat)
    look = looks(in_order({own.label for own in shown}))
    for axes, (place, quantity) in zip(axes_of, panels, strict=False):
        for own in shown:
            if own.place == place and quantity in own.curves:
                _curve(axes, own, own.curves[quantity], look[own.label])
        _finish(axes, place, quantity.replace("_", " "), one_place)
    for axes in axes_of[len(panels) :]:
        axes.set_visible(False)
    figure.supxlabel("frames", fontsize=11)
    legend_above(figure)
    return figure


def _moves(curves: Recorded) -> bool:
    """Whether there is anything to see; the length of episodes may always be the same."""
    return bool((curves.values != curves.values.flat[0]).any())


def _curve(axes: Axes, own: OwnRun, curves: Recorded, look: Look) -> None:
    frames, values = curves.thinned(MOST_POINTS)
    low, high = mean_band(values)
    axes.fill_between(frames, low, high, color=look.colour, alpha=0.2, linewidth=0)
    axes.plot(frames, values.mean(axis=0), color=look.colour, label=title(own.label), **look.line)


def _finish(axes: Axes, place: str, quantity: str, one_place: bool) -> None:
    axes.set_title(f"{place}: {quantity}" if one_place else place, fontsize=11)
    if not one_place:
        axes.set_ylabel(quantity)
    axes.set_xlim(left=0)
    for axis, most in ((axes.xaxis, 4), (axes.yaxis, 5)):
        axis.set_major_locator(MaxNLocator(most))
        axis.set_major_formatter(FuncFormatter(lambda x, _: short(x)))
    axes.grid()


def table(runs: Sequence[Run]) -> Table | None:
    """A row per run: what was trained, and its return over the last tenth."""
    shown = own_runs(runs)
    if not shown:
        return None
    columns = (
        Column("run", "run"),
        Column("environment", "environment"),
        Column("method", "method"),
        Column("preset", "preset"),
        Column("settings", "changed settings"),
        Column("seeds", "seeds"),
        Column("frames", "frames", ",.0f"),
        Column("episode_return", "return", ",.3f"),
        Column("low", "from", ",.3f"),
        Column("high", "to", ",.3f"),
    )
    return Table(columns, tuple(_row(own) for own in shown))


def _row(own: OwnRun) -> tuple[Cell, ...]:
    spec, curves = own.run.spec, own.curves.get(RETURN)
    changed = ", ".join(f"{name} {value}" for name, value in spec["method_settings"].items()) or "none"
    names = (own.run.path.name, own.place, title(spec["method"]), spec["preset"], changed, len(spec["seeds"]))
    scores = None if curves is None else curves.scores()
    if curves is None or scores is None:
        return (*names, None if curves is None else curves.trained, None, None, None)
    if len(scores) == 1:  # of which nobody can say how far others would lie from it
        return (*names, curves.trained, float(scores[0]), None, None)
    return (*names, curves.trained, *mean_interval(scores))
