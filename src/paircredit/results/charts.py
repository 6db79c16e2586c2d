"""How all figures look, what their charts are made of, and how they become files.

One colour and one marker per method, sizes that stay readable on paper and on screen. Matplotlib is imported when
something is drawn: whoever only trains need not have it.
"""

from __future__ import annotations

import functools
import io
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from paircredit.results.exhibits import Exhibit, exhibit, title
from paircredit.results.intervals import Interval, mean_band

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

R = TypeVar("R")


class Look(NamedTuple):
    """How a method is drawn: colour, marker, and keywords of its curves."""

    colour: str
    marker: str
    line: dict[str, Any]


def _look(colour: str, marker: str, width: float, *dashes: float | int) -> Look:
    return Look(colour, marker, {"linestyle": (0, dashes) if dashes else "-", "linewidth": width})


LOOKS = {
    "regular": _look("#4d4d4d", "o", 2.4),
    "a2c": _look("#4d4d4d", "o", 2.4),
    "h-pwr": _look("#d55e00", "s", 1.9, 5, 3),
    "meta-pwr": _look("#0072b2", "^", 2.1, 1, 1.5),
    "meta-pwtd": _look("#009e73", "D", 1.6),
    "meta-lambda": _look("#8c6d31", "v", 1.7, 7, 2),
    "rgm": _look("#cc79a7", "P", 1.7, 3, 1, 1, 1),
    "a2c-rr": _look("#e69f00", "X", 1.7, 4, 1.5),
    "tvt": _look("#7a5195", "<", 1.7, 6, 1, 1, 1, 1, 1),
    "synthetic-returns": _look("#56b4e9", ">", 1.7, 2, 1),
}
"""By labels of runs. Colours are of the Okabe–Ito palette, which colour-blind people can tell apart; dashes differ, so
that curves on top of each other can all be seen. A2C is what the regular return is in the evaluation of the DAG."""
COLOURS = {label: look.colour for label, look in LOOKS.items()}
_SPARE_COLOURS = ("#a50026", "#1b7837", "#f768a1", "#01665e")
_SPARE_MARKERS = ("p", "h", "d", "*")
_SPARE_DASHES = ((0, (9, 3)), (0, (8, 2, 2, 2)), (0, (3, 2)), (0, (1, 2)))
"""For methods that have no colour of their own."""
QUIET = "#8a8a8a"
"""For lines that help reading and for what belongs to no method of the evaluation."""

_STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.titlelocation": "left",
    "axes.labelsize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": "#e2e2e2",
    "grid.linewidth": 0.8,
    "xtick.labelsize": 10,
    "ytick.labelsize": 10,
    "legend.fontsize": 10,
    "legend.frameon": False,
}

DOTS_PER_INCH = 150
_DETERMINISTIC: dict[Any, Any] = {"svg.hashsalt": "paircredit", "svg.fonttype": "path", "image.composite_image": False}
_NO_METADATA = {"Date": None, "Creator": None, "Format": None, "Type": None}
_TICKS = (
    (12.0, (1, 2, 5)),
    (3.0, (1, 1.5, 2, 3, 4, 5, 6, 8)),
    (0.0, (1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9)),
)
"""Ticks of logarithmic axes within a power of ten, by the factor that the axis spans at least."""


def styled(draw: Callable[..., R]) -> Callable[..., R]:
    """Decorates a function that draws: the style holds inside of it and leaves other figures of the program alone."""

    @functools.wraps(draw)
    def drawn(*arguments: Any, **more: Any) -> R:
        from matplotlib import rc_context

        with rc_context(_STYLE):
            return draw(*arguments, **more)

    return drawn


def figure(name: str, title: str, caption: str | None = None, **more: Any) -> Callable[..., Exhibit]:
    """As `exhibit`, for a figure, which is drawn in the style of all."""
    return lambda draw: exhibit(name, title, caption, **more)(styled(draw))


def to_svg(figure: Figure) -> str:
    """The figure as SVG, with outlines instead of fonts and without a date: the same figure gives the same file."""
    from matplotlib import rc_context

    buffer = io.StringIO()
    with rc_context(_DETERMINISTIC):
        figure.savefig(buffer, format="svg", metadata=_NO_METADATA)
    return buffer.getvalue()


def to_png(figure: Figure) -> bytes:
    """The figure as PNG."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DOTS_PER_INCH, metadata={"Software": None})
    return buffer.getvalue()


def looks(labels: Sequence[str]) -> dict[str, Look]:
    """The look of each method: of all that there are in the runs, so that every figure comes to the same colours.

    Those that have no look of their own get the spare ones, in order.
    """
    found = {label: LOOKS[label] for label in labels if label in LOOKS}
    for number, label in enumerate(label for label in labels if label not in LOOKS):
        rounds, place = divmod(number, len(_SPARE_COLOURS))
        dashes = _SPARE_DASHES[(place + rounds) % len(_SPARE_DASHES)]  # in every round another one for a colour
        found[label] = Look(_SPARE_COLOURS[place], _SPARE_MARKERS[place], {"linestyle": dashes, "linewidth": 1.7})
    return found


def legend_above(figure: Figure, last: str | None = None) -> None:
    """One legend of all names that panels have, above them, in as many lines as it needs; one name may come last."""
    pairs = [pair for axes in figure.axes for pair in zip(*axes.get_legend_handles_labels(), strict=True)]
    named = {name: handle for handle, name in pairs}
    names = sorted(named, key=lambda name: name == last)
    columns = next((n for n in range(len(names), 1, -1) if _legend_width(names, n) <= figure.get_figwidth()), 1)
    lines = math.ceil(len(names) / columns)
    columns = math.ceil(len(names) / lines)  # no more of them than these lines need
    figure.legend([named[name] for name in names], names, loc="outside upper center", ncols=columns, handlelength=2.4)


def finish(figure: Figure, x: str, y: str, last: str | None = None) -> None:
    """Names of the axes that all panels share, where there are such, and their legend."""
    if x:
        figure.supxlabel(x, fontsize=11)
    if y:
        figure.supylabel(y, fontsize=11)
    legend_above(figure, last)


def _legend_width(names: Sequence[str], columns: int) -> float:
    """Inches that a legend takes: line, gaps, and the letters of the longest name in every column."""
    split = np.array_split(np.array(names), columns)
    return sum(0.85 + 0.085 * max(len(name) for name in column) for column in split)


def short(number: float) -> str:
    """A number for an axis with little room."""
    text = (
        f"{number / 1e6:g} M" if abs(number) >= 1e6 else f"{number / 1e3:g} k" if abs(number) >= 1e4 else f"{number:g}"
    )
    return text.replace("-", "−")


class Line(NamedTuple):
    """A curve of a panel: mean and band over the values [N, P] of the members of one method, at x [P].

    The bootstrap draws among the members of each group, a mask [N], or among all of them where there are no groups.
    """

    label: str
    x: np.ndarray
    values: np.ndarray
    groups: Sequence[np.ndarray] = ()


class Panel(NamedTuple):
    """Curves that share axes, a title, and a dashed line for comparison: its height and what it is called."""

    title: str
    lines: Sequence[Line]
    reference: tuple[float, str] | None = None


def grid(count: int, columns: int, size: tuple[float, float], **share: Any) -> tuple[Figure, list[Axes]]:
    """A figure of a size in inches with this many panels in rows of this many columns, and which axes they share."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    panels = list(figure.subplots(math.ceil(count / columns), columns, squeeze=False, **share).flat)
    for axes in panels[count:]:
        axes.set_visible(False)
    return figure, panels[:count]


def lines(axes: Axes, panel: Panel, look: Mapping[str, Look]) -> None:
    """Mean and 95 % band of every line of a panel, its dashed line and its title."""
    for line in panel.lines:
        groups = [line.values[members] for members in line.groups] or [line.values]
        shown = line.values[np.any(line.groups, axis=0)] if line.groups else line.values
        draw_mean(axes, line.x, shown.mean(axis=0), mean_band(*groups), look[line.label], title(line.label))
    if panel.reference is not None:
        dashed(axes, *panel.reference)
    axes.set_title(panel.title, fontsize=11)
    axes.grid()


def dashed(axes: Axes, height: float, name: str) -> None:
    """A line for comparison, such as random play."""
    axes.axhline(height, color=QUIET, linewidth=1.1, linestyle="--", zorder=1, label=name)


def draw_mean(
    axes: Axes, x: np.ndarray, means: np.ndarray, band: tuple[np.ndarray, np.ndarray], look: Look, name: str
) -> None:
    """A curve and the band around it."""
    axes.fill_between(x, *band, color=look.colour, alpha=0.2, linewidth=0)
    axes.plot(x, means, color=look.colour, label=name, **look.line)


def framed(axes: Axes) -> None:
    """Draws a thin frame on all four sides."""
    for spine in axes.spines.values():
        spine.set(visible=True, linewidth=0.6, color=QUIET)


def note(axes: Axes, text: str, at: tuple[Any, Any], points: tuple[int, int], **more: Any) -> None:
    """A small word at a place, moved by some points."""
    style = {"fontsize": 9, "color": "#555555", **more}
    axes.annotate(text, at, xytext=points, textcoords="offset points", **style)


def ticks(axis: Axis, most: int, form: str | Callable[[float], str] | None = None, *, whole: bool = False) -> None:
    """At most this many round ticks on an axis; whole numbers alone, and in another form than usual, where wanted."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(most, integer=whole))
    if form is not None:
        axis.set_major_formatter(form if isinstance(form, str) else FuncFormatter(lambda x, _: form(x)))


def only_ticks(axis: Axis, places: Sequence[float] | None, form: str = "{x:g}") -> None:
    """Ticks in these places and no others; without places, no small ones beside the usual."""
    from matplotlib.ticker import FixedLocator, NullLocator

    axis.set_minor_locator(NullLocator())
    if places is not None:
        axis.set_major_locator(FixedLocator(list(places)))
        axis.set_major_formatter(form)


def draw_members(axes: Axes, place: float, members: np.ndarray, interval: Interval, look: Look, name: str) -> None:
    """One line of a chart whose x axis measures: dots for members, a bar for the interval, a marker in it."""
    axes.plot([interval.low, interval.high], [place, place], color=look.colour, linewidth=7, alpha=0.3, zorder=2)
    axes.lines[-1].set_solid_capstyle("butt")
    axes.plot(members, np.full(len(members), place), "o", color=look.colour, alpha=0.5, markersize=2.6, mew=0, zorder=3)
    draw_median(axes, interval.estimate, place, look, name, zorder=4, clip_on=False, markersize=6, markeredgewidth=0.7)


def draw_median(axes: Axes, x: float, y: float, look: Look, name: str, **more: Any) -> None:
    """The marker of a method with a white edge, and its name for the legend."""
    style = {"markersize": 5.5, "markeredgewidth": 0.6, **more}
    axes.plot([x], [y], look.marker, color=look.colour, markeredgecolor="white", label=name, **style)


def moved(interval: Interval, never: float) -> Interval:
    """The interval with its infinite parts at `never`."""
    return Interval(*(value if np.isfinite(value) else never for value in interval))


def logarithmic(axes: Axes, times: Sequence[float], never: float | None, *, upright: bool = False) -> None:
    """A logarithmic axis from the earliest time on, x or (upright) y, with round ticks.

    Infinite times stand at `never`, on a dotted line at its end, which is None where there are none.
    """
    finite = [time for time in times if np.isfinite(time)] or [1.0 if never is None else never / 2]
    earliest, latest = min(finite), max(finite)
    low, high = earliest / 1.2, latest * 1.2 if never is None else never * 1.2
    factors = next(factors for span, factors in _TICKS if high / low > span)
    ticks = [factor * 10.0**power for power in range(-4, 4) for factor in factors]
    (axes.set_yscale if upright else axes.set_xscale)("log")
    (axes.set_ylim if upright else axes.set_xlim)(low, high)
    shown = [tick for tick in ticks if low <= tick <= max(latest * 1.02, high / 1.6)]
    only_ticks(axes.yaxis if upright else axes.xaxis, shown)
    if never is not None:
        (axes.axhline if upright else axes.axvline)(never, color=QUIET, linewidth=0.9, linestyle=":", zorder=1)
        if upright:
            note(axes, "not reached", (1, never), (3, 0), xycoords=axes.get_yaxis_transform(), va="center")
        else:
            above: dict[str, Any] = {"xycoords": axes.get_xaxis_transform(), "ha": "center"}
            note(axes, "not reached", (never, 1), (0, 3), **above)


def never_place(trained: Sequence[float], times: Sequence[float]) -> tuple[float, float | None]:
    """Where those stand that never got there: a bit after the longest training; and None if there are none."""
    place = 1.2 * max(trained)
    return place, None if np.isfinite(times).all() else place
