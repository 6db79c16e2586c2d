"""Pictures of pair weights: actions downwards, what they are credited with to the right."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from paircredit.results.charts import QUIET, framed, grid, note, ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURMAP = "viridis"
_LEAST = 1e-6
"""A largest weight below this one is not made bright."""


def later(weights: np.ndarray) -> np.ma.MaskedArray:
    """A matrix [T, T] over steps without what lies below the diagonal: rewards from before the action."""
    return np.ma.masked_array(weights, mask=np.tril(np.ones(weights.shape, dtype=bool), -1))


class PairAxes(NamedTuple):
    """How weights are shown: what masks pairs that nobody meets, steps at which phases begin and end, their names."""

    visible: Callable[[np.ndarray], np.ma.MaskedArray] = later
    edges: Sequence[int] = ()
    names: Sequence[str] = ()


PAIR_AXES: dict[str, Callable[[Mapping[str, Any], tuple[int, ...], bool], PairAxes | None]] = {}
"""By name of an environment: from its settings, the shape of the weights and whether they are of states, to how they
are shown, where that is not the usual. Studies enter theirs."""


class Picture(NamedTuple):
    """A matrix, what is written above it, and what it is of."""

    title: str
    weights: np.ndarray
    axes: PairAxes = PairAxes()
    x_label: str = ""
    y_label: str = ""


def pictures(
    shown: Sequence[Picture],
    columns: int,
    size: Callable[[int, int], tuple[float, float]],
    *,
    small: bool = False,
    title_size: int | None = None,
    pad: int | None = None,
) -> Figure:
    """Pictures beside and below each other, each in parts of its own largest weight, which is written into it.

    The size of the figure in inches follows from columns and rows; small ones are without names and numbers of phases.
    """
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    columns = min(len(shown), columns)
    figure, panels = grid(len(shown), columns, size(columns, math.ceil(len(shown) / columns)))
    for axes, picture in zip(panels, shown, strict=True):
        _show(axes, picture.axes.visible(picture.weights))
        _phases(axes, picture.axes, small)
        axes.set_title(picture.title, fontsize=title_size, pad=pad)
        axes.set_xlabel(picture.x_label)
        axes.set_ylabel(picture.y_label)
    bar = ScalarMappable(Normalize(0, 1), _COLOURMAP)
    figure.colorbar(bar, ax=figure.axes, label="weight, as part of the largest", pad=0.02, aspect=28)
    return figure


def _show(axes: Axes, weights: np.ma.MaskedArray) -> None:
    """Rows downwards, columns to the right, what is masked white."""
    largest, (rows, columns) = float(weights.max()), weights.shape
    axes.imshow(weights / max(largest, _LEAST), cmap=_COLOURMAP, vmin=0, vmax=1, interpolation="none")
    axes.set_aspect("equal" if rows == columns else "auto")
    framed(axes)
    box = {"facecolor": "white", "edgecolor": "none", "pad": 1}
    axes.text(0.03, 0.04, f"largest {largest:.2g}", transform=axes.transAxes, fontsize=9, color="#555555", bbox=box)


def _phases(axes: Axes, pairs: PairAxes, small: bool) -> None:
    """Lines between phases, their first steps as ticks and their names on top; or a few ticks where there are none."""
    for edge in pairs.edges[1:-1]:
        axes.axvline(edge - 0.5, color="white", linewidth=2.2)
        axes.axhline(edge - 0.5, color="white", linewidth=2.2)
        axes.axvline(edge - 0.5, color=QUIET, linewidth=0.7)
        axes.axhline(edge - 0.5, color=QUIET, linewidth=0.7)
    if small:
        axes.set(xticks=[], yticks=[])
    elif not pairs.edges:
        ticks(axes.xaxis, 5, whole=True)
        ticks(axes.yaxis, 5, whole=True)
    else:
        axes.set_xticks(pairs.edges[:-1])
        axes.set_yticks(pairs.edges[:-1])
        for name, begin, end in zip(pairs.names, pairs.edges, pairs.edges[1:], strict=False):
            write_above(axes, name, (begin + end - 1) / 2, 4, va="bottom")


def write_above(axes: Axes, text: str, column: float, points: int, *, sideways: int = 0, **more: Any) -> None:
    """A word above a column of a picture, this many points higher than its upper edge."""
    note(axes, text, (column, 1), (sideways, points), xycoords=axes.get_xaxis_transform(), **{"ha": "center", **more})
