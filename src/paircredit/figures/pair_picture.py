"""Pictures of pair weights, each matrix by its own largest entry, and their colour bar."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from paircredit.figures.style import QUIET

_COLOURMAP = "viridis"
_LEAST = 1e-6
"""A largest weight below this one is not made bright."""


def later(weights: np.ndarray) -> np.ma.MaskedArray:
    """A matrix [T, T] over steps without what lies below the diagonal: rewards of before the action."""
    return np.ma.masked_array(weights, mask=np.tril(np.ones(weights.shape, dtype=bool), -1))


def show_pairs(axes: Axes, weights: np.ma.MaskedArray) -> None:
    """Rows downwards, columns to the right, what is masked white; the largest entry is written into the picture."""
    largest, (rows, columns) = float(weights.max()), weights.shape
    axes.imshow(weights / max(largest, _LEAST), cmap=_COLOURMAP, vmin=0, vmax=1, interpolation="none")
    axes.set_aspect("equal" if rows == columns else "auto")
    for spine in axes.spines.values():
        spine.set(visible=True, linewidth=0.6, color=QUIET)
    box = {"facecolor": "white", "edgecolor": "none", "pad": 1}
    axes.text(0.03, 0.04, f"largest {largest:.2g}", transform=axes.transAxes, fontsize=9, color="#555555", bbox=box)


def colour_bar(figure: Figure, panels: list[Axes]) -> None:
    """Beside some pictures."""
    bar = ScalarMappable(Normalize(0, 1), _COLOURMAP)
    figure.colorbar(bar, ax=panels, label="weight, as part of the largest", pad=0.02, aspect=28)
