"""Handcrafted and meta-learned weights of the DAG (Figure 3 of the paper and its appendix)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from paircredit.analysis.dag_results import TITLES, pick
from paircredit.envs.dag import DagConfig
from paircredit.figures.heatmap import Panel, draw_heatmaps
from paircredit.figures.style import styled
from paircredit.runs.read import Run
from paircredit.weights import handcrafted_weights

LEARNED = ("meta-pwr", "meta-pwtd")


@styled
def draw(runs: Sequence[Run], depth: int = 8) -> Figure | None:
    """Heat maps of the handcrafted weights and of the mean learned ones, where there are reset runs at this depth."""
    learned = []
    for label in LEARNED:
        run = pick(runs, "reset", depth, label)
        if run is not None:
            tables = run.arrays()["weights"]
            learned.append(Panel(f"{TITLES[label]}, mean of {len(tables)} seeds", tables.mean(axis=0, dtype=float)))
    if not learned:
        return None
    handcrafted = np.asarray(handcrafted_weights(DagConfig(depth).build()).table)
    return draw_heatmaps([Panel("Handcrafted", handcrafted), *learned], depth)
