"""Handcrafted and meta-learned weights of Key-to-Door (Figure 4 of the paper, bottom).

Advantages are standardised, so that a factor on all weights changes nothing: every panel has the colours of its weights
as parts of its own largest one, which is written into it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from paircredit.analysis.key_to_door_results import pick_setting
from paircredit.analysis.key_to_door_weights import LearnedWeights, Phases, handcrafted, learned_weights
from paircredit.analysis.shown import title
from paircredit.figures.pair_picture import colour_bar, later, show_pairs
from paircredit.figures.style import QUIET, styled
from paircredit.runs.read import Run

_MOST_SNAPSHOTS = 10
_NAMES = ("key", "apples", "door")
OF_ERRORS = ("meta-pwtd",)
"""Methods that weigh TD errors instead of rewards."""


@styled
def draw(runs: Sequence[Run]) -> Figure | None:
    """Heat maps side by side: handcrafted weights, and the mean over seeds of those that each method learned."""
    found = _of_one_setting(runs)
    if not found:
        return None
    lengths = found[0].phases
    panels = [("Handcrafted", handcrafted(lengths), "reward")]
    for entry in found:
        name = f"{title(entry.label)}, {_seeds(entry.weights)}"
        panels.append((name, entry.weights.mean(axis=0), "TD error" if entry.label in OF_ERRORS else "reward"))
    figure = Figure(figsize=(3.5 * len(panels) + 0.9, 4.15), layout="constrained")
    axes_of = figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, (name, matrix, weighed) in zip(axes_of, panels, strict=True):
        show(axes, matrix, lengths)
        axes.set_title(name, pad=20)
        axes.set_xlabel(f"step of the {weighed}")
    axes_of[0].set_ylabel("step of the action")
    colour_bar(figure, list(axes_of))
    figure.suptitle(f"learned at {found[0].setting.text()}", fontsize=11, color="#555555")
    return figure


@styled
def draw_over_time(runs: Sequence[Run], label: str = "meta-pwr") -> Figure | None:
    """Small heat maps of one method's weights in the course of training, means over seeds."""
    found = [entry for entry in _of_one_setting(runs) if entry.label == label and entry.snapshots is not None]
    if not found or found[0].snapshots is None or found[0].snapshot_frames is None:
        return None
    entry, snapshots, frames = found[0], found[0].snapshots, found[0].snapshot_frames
    count = len(snapshots)
    chosen = np.unique(np.linspace(0, count - 1, min(count, _MOST_SNAPSHOTS)).round().astype(int))
    columns = min(len(chosen), 5)
    rows = -(-len(chosen) // columns)
    figure = Figure(figsize=(max(2.15 * columns + 0.9, 5.4), 2.4 * rows + 0.5), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False)
    for axes, index in zip(panels.flat, chosen, strict=False):
        show(axes, snapshots[index].astype(float).mean(axis=0), entry.phases, small=True)
        axes.set_title(f"{frames[index] / 1e6:.3g} M frames", fontsize=11)
    for axes in panels.flat[len(chosen) :]:
        axes.set_visible(False)
    colour_bar(figure, list(panels.flat))
    name = f"{title(label)} at {entry.setting.text()}, {_seeds(entry.weights)}"
    figure.suptitle(name, fontsize=11, color="#555555")
    return figure


def show(axes: Axes, weights: np.ndarray, lengths: Phases, *, small: bool = False) -> None:
    """One matrix [T, T] by its largest entry: action's step downwards, reward's to the right, white below the diagonal.

    Args:
        axes: where.
        weights: what.
        lengths: of the phases, whose boundaries are drawn.
        small: without names and numbers of the phases.
    """
    show_pairs(axes, later(weights))
    edges = (0, lengths.key, lengths.door_start, lengths.steps)
    for edge in edges[1:-1]:
        axes.axvline(edge - 0.5, color="white", linewidth=2.2)
        axes.axhline(edge - 0.5, color="white", linewidth=2.2)
        axes.axvline(edge - 0.5, color=QUIET, linewidth=0.7)
        axes.axhline(edge - 0.5, color=QUIET, linewidth=0.7)
    if small:
        axes.set(xticks=[], yticks=[])
        return
    axes.set_xticks(edges[:-1])
    axes.set_yticks(edges[:-1])
    for name, begin, end in zip(_NAMES, edges, edges[1:], strict=False):
        axes.annotate(
            name,
            ((begin + end - 1) / 2, 1),
            xycoords=axes.get_xaxis_transform(),
            xytext=(0, 4),
            textcoords="offset points",
            fontsize=9,
            ha="center",
            va="bottom",
            color="#555555",
        )


def _of_one_setting(runs: Sequence[Run]) -> list[LearnedWeights]:
    found = learned_weights(runs)
    setting = pick_setting([entry.setting for entry in found])
    return [entry for entry in found if entry.setting == setting]


def _seeds(weights: np.ndarray) -> str:
    return "one seed" if len(weights) == 1 else f"mean of {len(weights)} seeds"
