"""Handcrafted and meta-learned weights of Key-to-Door (Figure 4 of the paper, bottom).

Advantages are standardised, so that a factor on all weights changes nothing: every panel has the colours of its weights
as parts of its own largest one, which is written into it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from paircredit.results.charts import styled
from paircredit.results.exhibits import Exhibit
from paircredit.results.names import OF_ERRORS, title
from paircredit.results.pictures import Picture, pictures
from paircredit.runs.read import Run
from paircredit.studies.key_to_door.curves import pick_setting
from paircredit.studies.key_to_door.weights import LearnedWeights, handcrafted, learned_weights, pair_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_SNAPSHOTS = 10


@styled
def _weights(runs: Sequence[Run]) -> Figure | None:
    """Pictures side by side: handcrafted weights, and the mean over seeds of those that each method learned."""
    found = _of_one_setting(runs)
    if not found:
        return None
    axes = pair_axes(found[0].phases)
    panels = [Picture("Handcrafted", handcrafted(found[0].phases), axes, "step of the reward", "step of the action")]
    for entry in found:
        weighed = "TD error" if entry.label in OF_ERRORS else "reward"
        name = f"{title(entry.label)}, {_seeds(entry.weights)}"
        panels.append(Picture(name, entry.weights.mean(axis=0), axes, f"step of the {weighed}"))
    figure = pictures(panels, len(panels), lambda columns, _: (3.5 * columns + 0.9, 4.15), pad=20)
    figure.suptitle(f"learned at {found[0].setting.text()}", fontsize=11, color="#555555")
    return figure


@styled
def _over_time(runs: Sequence[Run], label: str = "meta-pwr") -> Figure | None:
    """Small pictures of one method's weights in the course of training, means over seeds."""
    found = [entry for entry in _of_one_setting(runs) if entry.label == label and entry.snapshots is not None]
    if not found or found[0].snapshots is None or found[0].snapshot_frames is None:
        return None
    entry, snapshots, frames = found[0], found[0].snapshots, found[0].snapshot_frames
    chosen = np.unique(np.linspace(0, len(snapshots) - 1, min(len(snapshots), _MOST_SNAPSHOTS)).round().astype(int))
    axes = pair_axes(entry.phases)
    panels = [
        Picture(f"{frames[index] / 1e6:.3g} M frames", snapshots[index].astype(float).mean(axis=0), axes)
        for index in chosen
    ]
    figure = pictures(
        panels, 5, lambda columns, rows: (max(2.15 * columns + 0.9, 5.4), 2.4 * rows + 0.5), small=True, title_size=11
    )
    name = f"{title(label)} at {entry.setting.text()}, {_seeds(entry.weights)}"
    figure.suptitle(name, fontsize=11, color="#555555")
    return figure


def _of_one_setting(runs: Sequence[Run]) -> list[LearnedWeights]:
    found = learned_weights(runs)
    setting = pick_setting([entry.setting for entry in found])
    return [entry for entry in found if entry.setting == setting]


def _seeds(weights: np.ndarray) -> str:
    return "one seed" if len(weights) == 1 else f"mean of {len(weights)} seeds"


WEIGHT_FIGURES = (
    Exhibit(
        "key-to-door-weights",
        "Key-to-Door: pair weights",
        "Each cell is the weight with which what arrives at the step of the column counts for the action at the step "
        "of the row; lines separate the key, apple and door phases. Learned weights are averages over the episodes of "
        "the last batch and over seeds. Figure 4 of the paper shows that the handcrafted and the Meta-PWR weights "
        "look alike: actions of the key phase (top rows) are credited with the door (right) and not with apples, and "
        "inside the apple phase credit falls steeply with the delay.",
        _weights,
    ),
    Exhibit(
        "key-to-door-weights-over-time",
        "Key-to-Door: Meta-PWR's weights in the course of training",
        "The same picture at several moments of training, means over episodes and seeds. The paper shows the end only.",
        _over_time,
    ),
)
