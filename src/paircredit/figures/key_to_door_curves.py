"""Learning curves of Key-to-Door in all settings (appendix of the paper)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from paircredit.analysis.key_to_door_results import Curves, Setting, all_curves, method_labels
from paircredit.analysis.shown import title
from paircredit.analysis.statistics import mean_band
from paircredit.figures.style import QUIET, Look, legend_above, looks, styled
from paircredit.runs.read import Run

AXIS_LABELS = {"episode_return": "episode return", "door_reward": "door reward", "apple_reward": "apple reward"}
"""What can be drawn."""
MOST_POINTS = 80
"""Per curve; each is the mean over a part of training."""
BEST = "most that can be expected"


@styled
def draw(runs: Sequence[Run], quantity: str = "episode_return", *, slips: bool = False) -> Figure | None:
    """A panel per setting, rows by the apples' mean and columns by their variance, with a curve per method.

    Args:
        runs: what to draw from.
        quantity: what to draw, a key of `AXIS_LABELS`.
        slips: whether to show the settings with random actions, or those without.
    """
    shown = [curves for curves in all_curves(runs) if (curves.setting.slip > 0) == slips]
    if not shown:
        return None
    settings = sorted({curves.setting for curves in shown})
    grid = arrange(settings)
    rows, columns = len(grid), len(grid[0])
    size = (6.4, 4.4) if len(settings) == 1 else (max(3.15 * columns + 0.5, 5.6), 2.45 * rows + 0.95)
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey="row")
    look = looks(method_labels(runs))
    for (row, column), axes in np.ndenumerate(panels):
        setting = grid[row][column]
        if setting is None:
            axes.set_visible(False)
            continue
        draw_panel(axes, [curves for curves in shown if curves.setting == setting], quantity, look)
        several_slips = len({other.slip for other in settings}) > 1
        axes.set_title(setting.text() if several_slips else setting._replace(slip=0.0).text(), fontsize=11)
        axes.tick_params(
            labelbottom=row == rows - 1 or grid[row + 1][column] is None,
            labelleft=column == 0 or grid[row][column - 1] is None,
        )
    figure.supxlabel("frames (millions)", fontsize=11)
    figure.supylabel(AXIS_LABELS[quantity], fontsize=11)
    legend_above(figure, last=BEST)
    return figure


def arrange(settings: Sequence[Setting]) -> list[list[Setting | None]]:
    """Settings in rows of equal slips and means; in columns of equal variances, if the rows have these in common."""
    rows: dict[tuple[float, float], list[Setting]] = {}
    for setting in settings:
        rows.setdefault((setting.slip, setting.mean), []).append(setting)
    longest = max(len(row) for row in rows.values())
    variances = sorted({setting.variance for setting in settings})
    if len(variances) == longest:
        return [[next((s for s in row if s.variance == v), None) for v in variances] for row in rows.values()]
    return [[*row, *[None] * (longest - len(row))] for row in rows.values()]


def draw_panel(axes: Axes, methods: Sequence[Curves], quantity: str, look: Mapping[str, Look]) -> None:
    """Mean and band of every method, and a line at what is best."""
    axes.axhline(methods[0].best[quantity], color=QUIET, linewidth=1.1, linestyle="--", zorder=1, label=BEST)
    for curves in methods:
        frames, values = thinned(curves, quantity)
        own = look[curves.label]
        low, high = mean_band(values)
        axes.fill_between(frames, low, high, color=own.colour, alpha=0.2, linewidth=0)
        axes.plot(frames, values.mean(axis=0), color=own.colour, label=title(curves.label), **own.line)
    if quantity == "door_reward":
        axes.set_ylim(-0.3, 1.06 * methods[0].best[quantity])
    axes.set_xlim(left=0)
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.grid()


def thinned(curves: Curves, quantity: str, points: int = MOST_POINTS) -> tuple[np.ndarray, np.ndarray]:
    """Frames in millions [P] and values [N, P], each the mean over neighbouring points, so that few are left."""
    count = len(curves.frames)
    begins = np.unique(np.linspace(0, count, min(points, count) + 1).astype(int)[:-1])
    sizes = np.diff(np.append(begins, count))
    frames = np.add.reduceat(curves.frames, begins) / sizes
    return frames / 1e6, np.add.reduceat(curves.values[quantity], begins, axis=1) / sizes
