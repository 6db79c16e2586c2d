"""Heat maps of pair weights of the DAG: acting states in rows, all states in columns, unreachable pairs white.

The layout counts in dots of the PNG, so that every cell is a whole number of dots wide; at depth 16 it is two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from paircredit.envs.dag import acting_states, layer_sizes, layer_starts, num_states, reachable
from paircredit.errors import PaircreditError
from paircredit.results.charts import COLOURS, DOTS_PER_INCH, framed
from paircredit.results.pictures import PAIR_AXES, PairAxes, write_above

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURMAP, _LINE = "viridis", "#b5b5b5"
_PANEL_WIDTH, _LEAST_CELL, _CORNER_CELL = 1100, 2, 6
_LEFT, _RIGHT, _HEADER, _BOTTOM, _BETWEEN = 115, 160, 80, 85, 50
_LEAST_LAYER_FOR_LINE, _LEAST_LAYER_FOR_NUMBER, _LEAST_TICK_DISTANCE = 12, 22, 60


def visible_weights(weights: np.ndarray, depth: int) -> np.ma.MaskedArray:
    """The rows of acting states of a table [S, S], with unreachable pairs masked."""
    states = num_states(depth)
    if weights.shape != (states, states):
        raise PaircreditError(f"Weights of a DAG of depth {depth} have shape {(states, states)}, not {weights.shape}.")
    rows = acting_states(depth)
    return np.ma.masked_array(weights[rows], mask=~reachable(depth)[rows])


PAIR_AXES["dag"] = lambda settings, _, by_state: (
    PairAxes(lambda weights: visible_weights(weights, settings["depth"])) if by_state else None
)


def draw_heatmaps(panels: Sequence[tuple[str, np.ndarray]], depth: int, *, mark_middle: bool = False) -> Figure:
    """Heat maps of titled tables [S, S] above each other; where the middle layer's columns end can be marked."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

    columns, rows = num_states(depth), len(acting_states(depth))
    cell = max(_LEAST_CELL, _PANEL_WIDTH // columns)
    width, height = cell * columns, cell * rows
    total_width = _LEFT + width + _RIGHT
    total_height = len(panels) * (_HEADER + height + _BETWEEN) - _BETWEEN + _BOTTOM
    figure = Figure(figsize=(total_width / DOTS_PER_INCH, total_height / DOTS_PER_INCH))

    def place(left: int, bottom: int, wide: int, high: int) -> Axes:
        return figure.add_axes((left / total_width, bottom / total_height, wide / total_width, high / total_height))

    for index, (title, weights) in enumerate(panels):
        bottom = _BOTTOM + (len(panels) - 1 - index) * (_HEADER + height + _BETWEEN)
        axes = place(_LEFT, bottom, width, height)
        visible = visible_weights(weights, depth)
        _show(axes, visible)
        axes.set_title(title, pad=22)
        _label_layers(axes, depth, cell)
        if mark_middle:
            last = layer_starts(depth)[depth // 2 + 1] - 1
            axes.axvline(last + 0.5, color=COLOURS["h-pwr"], linewidth=2)
            write_above(axes, f"state {last} | first reward", last + 0.5, 18, color=COLOURS["h-pwr"])
        if cell == _LEAST_CELL:
            first_row, first_column = layer_starts(depth)[[depth // 2 - 3, -6]]  # after it layers are narrow
            corner = visible[:first_row, first_column:]
            high, wide = corner.shape
            inset = place(_LEFT + 24, bottom + 24, wide * _CORNER_CELL, high * _CORNER_CELL)
            _draw_corner(inset, corner, int(first_column))
        axes.set_ylabel("state acted in")
        if index == len(panels) - 1:
            axes.set_xlabel("state of the reward")
    bar = place(_LEFT + width + 45, _BOTTOM, 24, total_height - _HEADER - _BOTTOM)
    figure.colorbar(ScalarMappable(Normalize(0, 1), _COLOURMAP), cax=bar, label="weight")
    return figure


def _show(axes: Axes, weights: np.ma.MaskedArray) -> None:
    axes.imshow(weights, cmap=_COLOURMAP, vmin=0, vmax=1, interpolation="none", aspect="auto")


def _draw_corner(axes: Axes, weights: np.ma.MaskedArray, first_column: int) -> None:
    """The upper right corner enlarged, in the lower left one, where no pair is reachable."""
    _show(axes, weights)
    rows, columns = weights.shape
    shown = f"states 0–{rows - 1} × states {first_column}–{first_column + columns - 1}"
    axes.set_title(f"enlarged: {shown}", fontsize=9, pad=3, color="#555555")
    axes.set(xticks=[], yticks=[])
    framed(axes)


def _label_layers(axes: Axes, depth: int, cell: int) -> None:
    """First states of layers as ticks, boundaries of layers as lines, numbers of layers on top."""
    sizes, starts = np.append(layer_sizes(depth), 1), layer_starts(depth)
    acting = depth // 2
    framed(axes)
    axes.set_xticks(_spread(starts, num_states(depth), cell))
    axes.set_yticks(_spread(starts[:acting], len(acting_states(depth)), cell))
    below = -1 if cell < _LEAST_LAYER_FOR_LINE else 1  # small cells may not be covered: lines show in white places only
    for layer in range(1, len(sizes)):
        if cell * min(sizes[layer - 1], sizes[layer]) >= _LEAST_LAYER_FOR_LINE:
            axes.axvline(starts[layer] - 0.5, color=_LINE, linewidth=0.6, zorder=below)
            if layer < acting:
                axes.axhline(starts[layer] - 0.5, color=_LINE, linewidth=0.6, zorder=below)
    write_above(axes, "layer", -0.5, 5, sideways=-6, ha="right")
    for layer, (start, size) in enumerate(zip(starts, sizes, strict=True), start=1):
        if layer == depth + 1:
            write_above(axes, "end", start - 0.5, 5, ha="left")
        elif cell * size >= _LEAST_LAYER_FOR_NUMBER:
            write_above(axes, str(layer), start + (size - 1) / 2, 5)


def _spread(starts: np.ndarray, count: int, cell: int) -> list[int]:
    """All states where their numbers have room beside each other, else those first states of layers that have."""
    if cell >= _LEAST_TICK_DISTANCE:
        return list(range(count))
    chosen = [int(starts[0])]
    for state in starts[1:]:
        if (state - chosen[-1]) * cell >= _LEAST_TICK_DISTANCE:
            chosen.append(int(state))
    return chosen
