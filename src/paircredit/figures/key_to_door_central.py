"""Learning curves of Key-to-Door in its central setting (Figure 5 of the paper)."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from paircredit.analysis.key_to_door_results import CENTRAL, all_curves, method_labels
from paircredit.figures.key_to_door_curves import AXIS_LABELS, BEST, draw_panel
from paircredit.figures.style import legend_above, looks, styled
from paircredit.runs.read import Run


@styled
def draw(runs: Sequence[Run]) -> Figure | None:
    """Episode return on the left, door reward on the right."""
    shown = [curves for curves in all_curves(runs) if curves.setting == CENTRAL]
    if not shown:
        return None
    figure = Figure(figsize=(9.6, 4.3), layout="constrained")
    look = looks(method_labels(runs))
    for axes, quantity in zip(figure.subplots(1, 2), ("episode_return", "door_reward"), strict=True):
        draw_panel(axes, shown, quantity, look)
        axes.set_title(AXIS_LABELS[quantity])
        axes.set_xlabel("frames (millions)")
    legend_above(figure, last=BEST)
    return figure
