"""What Meta-PWTD learns when the value function is the optimal one, masked (appendix of the paper)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from paircredit.analysis.dag_results import pick
from paircredit.figures.heatmap import Panel, draw_heatmaps
from paircredit.figures.style import styled
from paircredit.runs.read import Run


@styled
def draw(runs: Sequence[Run]) -> Figure | None:
    """A heat map for every mask: the mean of its weight tables."""
    run = pick(runs, "masked-values")
    if run is None:
        return None
    arrays = run.arrays()
    weights, masks = arrays["weights"], arrays["label_mask"]
    panels = [
        Panel(_title(int(mask), int((masks == mask).sum())), weights[masks == mask].mean(axis=0, dtype=float))
        for mask in np.unique(masks)
    ]
    return draw_heatmaps(panels, run.spec["tags"]["depth"], mark_middle=True)


def _title(mask: int, seeds: int) -> str:
    masked = f"0 up to layer {mask}" if mask else "nothing masked"
    return f"Mask {mask}: {masked}, mean of {seeds} seeds"
