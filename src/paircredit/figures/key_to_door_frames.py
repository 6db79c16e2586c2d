"""How long each method takes to learn Key-to-Door: frames to a door reward, by setting."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from paircredit.analysis.key_to_door_results import (
    LEARNED,
    OPTIMAL,
    Curves,
    Setting,
    all_curves,
    final_values,
    frames_to,
    method_labels,
    value_at,
)
from paircredit.analysis.shown import title
from paircredit.analysis.statistics import mean_interval, median_of_times
from paircredit.figures.style import legend_above, looks, styled
from paircredit.figures.tables import Cell, Column, Table
from paircredit.figures.times import draw_members, logarithmic, moved, never_place
from paircredit.runs.read import Run

_BESIDE, _BETWEEN = 1.0, 0.9
"""Distance between methods of a setting, and more of it between settings."""


@styled
def draw(runs: Sequence[Run]) -> Figure | None:
    """A panel per door reward, with a line per setting and method."""
    found = all_curves(runs)
    if not found:
        return None
    look = looks(method_labels(runs))
    labels = list(look)
    settings = sorted({curves.setting for curves in found}, key=lambda s: (s.slip, s.mean, s.variance))
    block = len(labels) * _BESIDE + _BETWEEN
    height = max(3.4, 1.2 + 0.135 * block * len(settings))
    figure = Figure(figsize=(9.6, height), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for axes, threshold in zip(panels, (LEARNED, OPTIMAL), strict=True):
        times = [frames_to(curves, threshold) / 1e6 for curves in found]
        never, shown = never_place([curves.trained / 1e6 for curves in found], np.concatenate(times).tolist())
        for curves, own in zip(found, times, strict=True):
            place = settings.index(curves.setting) * block + labels.index(curves.label) * _BESIDE
            median = moved(median_of_times(own), never)
            members = np.where(np.isfinite(own), own, never)
            draw_members(axes, place, members, median, look[curves.label], title(curves.label))
        logarithmic(axes, np.concatenate(times).tolist(), shown)
        axes.set_title(f"door reward {threshold:g}", pad=16)
        axes.set_xlabel("frames (millions)")
        axes.grid(axis="x")
        for index in range(0, len(settings), 2):
            top = index * block - 0.5 - _BETWEEN / 2
            axes.axhspan(top, top + block, color="#f5f5f5", zorder=0)
    middle = (len(labels) - 1) / 2 * _BESIDE
    names = [_two_lines(setting) for setting in settings]
    panels[0].set_yticks([index * block + middle for index in range(len(settings))], names)
    panels[0].set_ylim(len(settings) * block - 0.5 - _BETWEEN / 2, -0.5 - _BETWEEN / 2)
    for axes in panels:
        axes.tick_params(axis="y", length=0)
    legend_above(figure)
    return figure


def _two_lines(setting: Setting) -> str:
    slips = f"\n{100 * setting.slip:g} % random actions" if setting.slip else ""
    return setting._replace(slip=0.0).text() + slips


def table(runs: Sequence[Run]) -> Table | None:
    """A row per setting and method."""
    found = all_curves(runs)
    if not found:
        return None
    columns = (
        Column("mean", "μ", "g"),
        Column("variance", "σ²", "g"),
        Column("slip", "random actions", "g"),
        Column("method", "method"),
        Column("seeds", "seeds"),
        Column("trained_frames", "frames trained", ",.0f"),
        Column("reached_9", "seeds at 9"),
        Column("frames_to_9", "frames to 9", ",.0f"),
        Column("frames_to_9_low", "from", ",.0f"),
        Column("frames_to_9_high", "to", ",.0f"),
        Column("reached_9.5", "seeds at 9.5"),
        Column("frames_to_9.5", "frames to 9.5", ",.0f"),
        Column("frames_to_9.5_low", "from", ",.0f"),
        Column("frames_to_9.5_high", "to", ",.0f"),
        Column("final_door_reward", "final door reward", ".2f"),
        Column("final_return", "final return", ".2f"),
        Column("final_return_low", "from", ".2f"),
        Column("final_return_high", "to", ".2f"),
        Column("best_return", "best", ".2f"),
        Column("equal_frames", "frames all trained", ",.0f"),
        Column("equal_door_reward", "door reward then", ".2f"),
        Column("equal_door_reward_low", "from", ".2f"),
        Column("equal_door_reward_high", "to", ".2f"),
        Column("equal_return", "return then", ".2f"),
        Column("equal_return_low", "from", ".2f"),
        Column("equal_return_high", "to", ".2f"),
    )
    trained = {one.setting: min(c.trained for c in found if c.setting == one.setting) for one in found}
    return Table(columns, tuple(_row(curves, trained[curves.setting]) for curves in found))


def _row(curves: Curves, equal_frames: float) -> tuple[Cell, ...]:
    cells: list[Cell] = [*curves.setting, title(curves.label), len(curves.seeds), curves.trained]
    for threshold in (LEARNED, OPTIMAL):
        times = frames_to(curves, threshold)
        cells += [int(np.isfinite(times).sum()), *median_of_times(times)]
    cells.append(float(final_values(curves, "door_reward").mean()))
    cells += [*mean_interval(final_values(curves, "episode_return")), curves.best["episode_return"], equal_frames]
    for quantity in ("door_reward", "episode_return"):
        cells += mean_interval(value_at(curves, quantity, equal_frames))
    return tuple(cells)
