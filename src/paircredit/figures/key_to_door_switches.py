"""Settings tried side by side in Key-to-Door: what the paper leaves open, and the searches of its appendix."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from paircredit.analysis.key_to_door_results import (
    LEARNED,
    SWITCHES,
    VARIANTS,
    Curves,
    all_curves,
    door_reward_at,
    final_values,
    frames_to,
    method_labels,
    pick_setting,
)
from paircredit.analysis.shown import title
from paircredit.analysis.statistics import mean_interval, median_of_times
from paircredit.figures.style import legend_above, looks, styled
from paircredit.figures.tables import Cell, Column, Table
from paircredit.figures.times import draw_members, logarithmic, moved, never_place
from paircredit.runs.read import Run

GIVEN_FRAMES = (1e6, 2.5e6, 5e6, 1e7, 2e7)
"""The table has the door reward after so many frames, where somebody trained that long."""
DEFAULT = "default"


@styled
def draw(runs: Sequence[Run], role: str = SWITCHES) -> Figure | None:
    """Frames to a door reward of 9 on the left; on the right the door reward at the end of the shortest training."""
    found = _found(runs, role)
    if not found:
        return None
    look = looks(method_labels(runs))
    figure = Figure(figsize=(9.6, 1.5 + 0.36 * len(found)), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    common = min(curves.trained for curves in found)
    times = [frames_to(curves, LEARNED) / 1e6 for curves in found]
    never, shown = never_place([curves.trained / 1e6 for curves in found], np.concatenate(times).tolist())
    for number, (curves, own) in enumerate(zip(found, times, strict=True)):
        place, method, name = float(number), look[curves.label], title(curves.label)
        members = np.where(np.isfinite(own), own, never)
        draw_members(left, place, members, moved(median_of_times(own), never), method, name)
        rewards = door_reward_at(curves, common)
        if rewards is not None:
            draw_members(right, place, rewards, mean_interval(rewards), method, name)
    logarithmic(left, np.concatenate(times).tolist(), shown)
    left.set_xlabel(f"frames to a door reward of {LEARNED:g} (millions)")
    right.set_xlabel(f"door reward after {common / 1e6:.3g} M frames")
    right.set_xlim(-0.3, 10.3)
    left.set_yticks(range(len(found)), [curves.variant[0] for curves in found])
    left.set_ylim(len(found) - 0.5, -0.5)
    for axes in (left, right):
        axes.grid(axis="both")
        axes.tick_params(axis="y", length=0)
    legend_above(figure)
    return figure


def table(runs: Sequence[Run], role: str = SWITCHES) -> Table | None:
    """A row per method and setting."""
    found = _found(runs, role)
    if not found:
        return None
    longest = max(curves.trained for curves in found)
    given = [frames for frames in GIVEN_FRAMES if frames <= longest]
    columns = (
        Column(VARIANTS[role][0], VARIANTS[role][0]),
        Column("method", "method"),
        Column("seeds", "seeds"),
        Column("trained_frames", "frames trained", ",.0f"),
        Column("reached_9", "seeds at 9"),
        Column("frames_to_9", "frames to 9", ",.0f"),
        Column("frames_to_9_low", "from", ",.0f"),
        Column("frames_to_9_high", "to", ",.0f"),
        *(Column(f"door_at_{frames:.0f}", f"door reward at {frames / 1e6:g} M", ".2f") for frames in given),
        Column("final_door_reward", "final door reward", ".2f"),
        Column("final_return", "final return", ".2f"),
    )
    return Table(columns, tuple(_row(curves, given) for curves in found))


def _row(curves: Curves, given: Sequence[float]) -> tuple[Cell, ...]:
    times = frames_to(curves, LEARNED)
    at = [door_reward_at(curves, frames) for frames in given]
    return (
        str(curves.variant[0]),
        title(curves.label),
        len(times),
        curves.trained,
        int(np.isfinite(times).sum()),
        *median_of_times(times),
        *(None if rewards is None else float(rewards.mean()) for rewards in at),
        float(final_values(curves, "door_reward").mean()),
        float(final_values(curves, "episode_return").mean()),
    )


def _found(runs: Sequence[Run], role: str) -> list[Curves]:
    """By method; of each, what everything is compared with first."""
    found = all_curves(runs, role)
    setting = pick_setting([curves.setting for curves in found])
    own = [curves for curves in found if curves.setting == setting]
    order = method_labels(runs)
    return sorted(own, key=lambda c: (order.index(c.label), c.variant[0] != DEFAULT, c.variant[0]))
