"""Learning curves of the DAG (appendix of the paper)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from paircredit.analysis.dag_results import LABELS, SHARE_OF_BEST, TITLES, best_return, depths, learning_curves, pick
from paircredit.analysis.statistics import mean_band
from paircredit.figures.style import COLOURS, LINES, QUIET, styled
from paircredit.runs.read import Run

LAST_EPISODE = 10_000
MOST_POINTS = 160
"""Per curve; more would only make files larger."""


@styled
def draw(runs: Sequence[Run]) -> Figure | None:
    """A panel per depth with a curve per method."""
    shown = depths(runs, "evaluation")
    if not shown:
        return None
    figure = Figure(figsize=(3.6 * len(shown) + 0.4, 3.9), layout="constrained")
    panels = figure.subplots(1, len(shown), squeeze=False)[0]
    for axes, depth in zip(panels, shown, strict=True):
        for label in LABELS:
            run = pick(runs, "evaluation", depth, label)
            if run is not None:
                _draw_curve(axes, run, label)
        _finish(axes, depth)
    panels[0].set_ylabel("expected return")
    handles = {name: handle for axes in panels for handle, name in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=len(handles))
    return figure


def _draw_curve(axes: Axes, run: Run, label: str) -> None:
    curves = learning_curves(run)
    within = np.flatnonzero(curves.episodes <= LAST_EPISODE)
    chosen = np.unique(within[np.linspace(0, len(within) - 1, MOST_POINTS).round().astype(int)])
    episodes, returns = curves.episodes[chosen], curves.expected[:, chosen]
    low, high = mean_band(returns)
    axes.fill_between(episodes, low, high, color=COLOURS[label], alpha=0.2, linewidth=0)
    axes.plot(episodes, returns.mean(axis=0), color=COLOURS[label], label=TITLES[label], **LINES[label])


def _finish(axes: Axes, depth: int) -> None:
    best = best_return(depth)
    axes.axhline(SHARE_OF_BEST * best, color=QUIET, linewidth=1, linestyle="--", zorder=1)
    axes.annotate(
        "95 % of the best return",
        (1, SHARE_OF_BEST * best),
        xycoords=axes.get_yaxis_transform(),
        xytext=(-2, -4),
        textcoords="offset points",
        ha="right",
        va="top",
        fontsize=9,
        color="#555555",
    )
    axes.set_title(f"depth {depth}")
    axes.set_xlim(0, LAST_EPISODE)
    axes.set_ylim(top=best * 1.04)
    axes.set_yticks(np.linspace(0, best, 5))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_xticks(range(0, LAST_EPISODE + 1, 5_000))
    axes.set_xticks(range(0, LAST_EPISODE + 1, 1_000), minor=True)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlabel("episodes")
    axes.grid()
