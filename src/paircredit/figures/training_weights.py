"""What runs of `paircredit train` have learned to weigh, on whichever environment."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from paircredit.analysis.key_to_door_weights import phases
from paircredit.analysis.own_runs import OwnRun, own_runs
from paircredit.analysis.shown import title
from paircredit.figures.heatmap import visible_weights
from paircredit.figures.key_to_door_weights import OF_ERRORS, show
from paircredit.figures.pair_picture import colour_bar, later, show_pairs
from paircredit.figures.style import styled
from paircredit.runs.read import Run

MOST_PANELS = 12
_COLUMNS = 4


class _Learned(NamedTuple):
    """What a run has learned, the mean over its seeds.

    Attributes:
        own: the run.
        weights: [S, S] by state or [T, T] by step.
        by_state: which of them.
    """

    own: OwnRun
    weights: np.ndarray
    by_state: bool


@styled
def draw(runs: Sequence[Run]) -> Figure | None:
    """A heat map per run that has learned weights."""
    found = [learned for own in own_runs(runs) if own.run.finished and (learned := _learned(own)) is not None]
    if not found:
        return None
    shown = found[:MOST_PANELS]
    columns = min(len(shown), _COLUMNS)
    rows = math.ceil(len(shown) / columns)
    figure = Figure(figsize=(max(3.6 * columns + 0.9, 5.4), 3.9 * rows + 0.3), layout="constrained")
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    one_place = len({learned.own.place for learned in shown}) == 1
    for axes, learned in zip(panels, shown, strict=False):
        _show(axes, learned)
        own, seeds = learned.own, len(learned.own.run.spec["seeds"])
        name = title(own.label) if one_place else f"{own.place}\n{title(own.label)}"
        axes.set_title(f"{name}, one seed" if seeds == 1 else f"{name}, mean of {seeds} seeds", fontsize=11, pad=20)
    for axes in panels[len(shown) :]:
        axes.set_visible(False)
    colour_bar(figure, panels)
    told = [shown[0].own.place] if one_place else []
    told += [f"the first {len(shown)} of {len(found)} runs"] if len(shown) < len(found) else []
    figure.suptitle(", ".join(told), fontsize=11, color="#555555")
    return figure


def _learned(own: OwnRun) -> _Learned | None:
    """None where there are no weights of pairs: a method may have learned something else instead."""
    arrays = own.run.arrays()
    weights, logits = arrays.get("weights"), arrays.get("policy_logits")
    if weights is None or weights.ndim != 3 or weights.shape[1] != weights.shape[2]:
        return None
    by_state = logits is not None and logits.shape[1] == weights.shape[1]
    return _Learned(own, weights.mean(axis=0, dtype=float), by_state)


def _show(axes: Axes, learned: _Learned) -> None:
    spec = learned.own.run.spec
    if spec["env"] == "key-to-door" and phases(learned.own.run).steps == len(learned.weights):
        show(axes, learned.weights, phases(learned.own.run))
    else:
        show_pairs(axes, _met(learned))
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(5, integer=True))
    of = "state" if learned.by_state else "step"
    axes.set_xlabel(f"{of} of the {'TD error' if spec['method'] in OF_ERRORS else 'reward'}")
    axes.set_ylabel(f"{of} of the action")


def _met(learned: _Learned) -> np.ma.MaskedArray:
    """Without pairs that nobody meets, as far as that is known."""
    spec = learned.own.run.spec
    if not learned.by_state:
        return later(learned.weights)
    if spec["env"] == "dag":
        return visible_weights(learned.weights, spec["env_settings"]["depth"])
    return np.ma.masked_array(learned.weights)
