"""How all figures look: one colour and one marker per method, sizes that stay readable on paper and on screen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

COLOURS = {
    "regular": "#4d4d4d",
    "a2c": "#4d4d4d",
    "h-pwr": "#d55e00",
    "meta-pwr": "#0072b2",
    "meta-pwtd": "#009e73",
    "meta-lambda": "#8c6d31",
    "rgm": "#cc79a7",
    "a2c-rr": "#e69f00",
    "tvt": "#7a5195",
    "synthetic-returns": "#56b4e9",
}
"""Of the Okabe–Ito palette, which colour-blind people can tell apart; keys are labels of runs. A2C is what the regular
return is in the evaluation of the DAG."""
MARKERS = {
    "regular": "o",
    "a2c": "o",
    "h-pwr": "s",
    "meta-pwr": "^",
    "meta-pwtd": "D",
    "meta-lambda": "v",
    "rgm": "P",
    "a2c-rr": "X",
    "tvt": "<",
    "synthetic-returns": ">",
}
LINES: dict[str, Any] = {
    "regular": {"linestyle": "-", "linewidth": 2.4},
    "a2c": {"linestyle": "-", "linewidth": 2.4},
    "h-pwr": {"linestyle": (0, (5, 3)), "linewidth": 1.9},
    "meta-pwr": {"linestyle": (0, (1, 1.5)), "linewidth": 2.1},
    "meta-pwtd": {"linestyle": "-", "linewidth": 1.6},
    "meta-lambda": {"linestyle": (0, (7, 2)), "linewidth": 1.7},
    "rgm": {"linestyle": (0, (3, 1, 1, 1)), "linewidth": 1.7},
    "a2c-rr": {"linestyle": (0, (4, 1.5)), "linewidth": 1.7},
    "tvt": {"linestyle": (0, (6, 1, 1, 1, 1, 1)), "linewidth": 1.7},
    "synthetic-returns": {"linestyle": (0, (2, 1)), "linewidth": 1.7},
}
"""Of curves: where several lie on each other, all of them can be seen."""
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

styled = rc_context(_STYLE)
"""Decorates a function that draws: the style holds inside of it and leaves other figures of the program alone."""


class Look(NamedTuple):
    """How a method is drawn: colour, marker, and keywords of its curves."""

    colour: str
    marker: str
    line: dict[str, Any]


def looks(labels: Sequence[str]) -> dict[str, Look]:
    """The look of each method; those that have none of their own get the spare ones, in order.

    Args:
        labels: of all methods in the runs, so that every figure of them comes to the same colours.
    """
    found = {label: Look(COLOURS[label], MARKERS[label], LINES[label]) for label in labels if label in COLOURS}
    for number, label in enumerate(label for label in labels if label not in COLOURS):
        rounds, place = divmod(number, len(_SPARE_COLOURS))
        dashes = _SPARE_DASHES[(place + rounds) % len(_SPARE_DASHES)]  # in every round another one for a colour
        found[label] = Look(_SPARE_COLOURS[place], _SPARE_MARKERS[place], {"linestyle": dashes, "linewidth": 1.7})
    return found


def legend_above(figure: Figure, last: str | None = None) -> None:
    """One legend for all panels, above them, in as many lines as it needs.

    Args:
        figure: what its panels have names for goes into the legend, each name once.
        last: a name that comes last.
    """
    pairs = [pair for axes in figure.axes for pair in zip(*axes.get_legend_handles_labels(), strict=True)]
    named = {name: handle for handle, name in pairs}
    names = sorted(named, key=lambda name: name == last)
    columns = next((n for n in range(len(names), 1, -1) if _legend_width(names, n) <= figure.get_figwidth()), 1)
    lines = math.ceil(len(names) / columns)
    columns = math.ceil(len(names) / lines)  # no more of them than these lines need
    figure.legend([named[name] for name in names], names, loc="outside upper center", ncols=columns, handlelength=2.4)


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
