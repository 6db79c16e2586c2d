"""How all figures look: one colour and one marker per method, sizes that stay readable on paper and on screen."""

from __future__ import annotations

from typing import Any

from matplotlib import rc_context

COLOURS = {"regular": "#4d4d4d", "h-pwr": "#d55e00", "meta-pwr": "#0072b2", "meta-pwtd": "#009e73"}
"""Of the Okabe–Ito palette, which colour-blind people can tell apart; keys are labels of `analysis.dag_results`."""
MARKERS = {"regular": "o", "h-pwr": "s", "meta-pwr": "^", "meta-pwtd": "D"}
LINES: dict[str, Any] = {
    "regular": {"linestyle": "-", "linewidth": 2.4},
    "h-pwr": {"linestyle": (0, (5, 3)), "linewidth": 1.9},
    "meta-pwr": {"linestyle": (0, (1, 1.5)), "linewidth": 2.1},
    "meta-pwtd": {"linestyle": "-", "linewidth": 1.6},
}
"""Of curves: where several lie on each other, all of them can be seen."""
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
