"""Illustrative analysis: how noisy the advantage of the umbrella decision is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from paircredit.figures.style import COLOURS, styled
from paircredit.figures.tables import Column, Table
from paircredit.runs.read import Run

MONTE_CARLO, PWR = "Monte Carlo", "PWR"
_SHADES = ("#b0b0b0", "#7d7d7d", "#4d4d4d", "#1a1a1a")
_MARKERS = ("o", "s", "^", "D")


@styled
def draw(runs: Sequence[Run]) -> Figure | None:
    """Variance against length for every σ², and the variance of PWR in a strip of its own below."""
    rows = _rows(runs)
    if not rows:
        return None
    figure = Figure(figsize=(8, 5.6), layout="constrained")
    upper, strip = figure.subplots(2, 1, sharex=True, height_ratios=(5, 1))
    _draw_monte_carlo(upper, [row for row in rows if row["estimator"] == MONTE_CARLO])
    _draw_pwr(strip, [row for row in rows if row["estimator"] == PWR])
    lengths = sorted({row["length"] for row in rows})
    strip.set_xscale("log")
    strip.xaxis.set_major_locator(FixedLocator(lengths))
    strip.xaxis.set_minor_locator(NullLocator())
    strip.xaxis.set_major_formatter("{x:g}")
    strip.set_xlabel("length T of an episode")
    figure.supylabel("variance of the first action's advantage", fontsize=11)
    return figure


def table(runs: Sequence[Run]) -> Table | None:
    """A row per MDP and first action: predicted and measured variances."""
    rows = _rows(runs)
    if not rows:
        return None
    quiet = {_case(row): row["measured_variance"] for row in rows if row["estimator"] == PWR}
    cells = []
    for row in rows:
        if row["estimator"] == MONTE_CARLO:
            predicted, measured = row["predicted_variance"], row["measured_variance"]
            ratio = measured / predicted if predicted > 0 else None
            cells.append((*_case(row), row["episodes"], predicted, measured, ratio, quiet.get(_case(row))))
    return Table(
        (
            Column("length", "T"),
            Column("noise_variance", "σ²", "g"),
            Column("first_action", "first action"),
            Column("episodes", "episodes", ",d"),
            Column("monte_carlo_predicted", "(T−1)σ²", ".6g"),
            Column("monte_carlo_measured", "Monte Carlo, measured", "#.5g"),
            Column("ratio", "measured / predicted", ".3f"),
            Column("pwr_measured", "PWR, measured", ".3g"),
        ),
        tuple(cells),
    )


def _rows(runs: Sequence[Run]) -> list[dict[str, Any]]:
    return [row for run in runs if run.kind == "umbrella-variance" for row in run.metrics()]


def _case(row: dict[str, Any]) -> tuple[int, float, int]:
    return row["length"], row["variance"], row["action"]


def _draw_monte_carlo(axes: Axes, rows: list[dict[str, Any]]) -> None:
    for index, variance in enumerate(sorted({row["variance"] for row in rows})):
        colour, marker = _SHADES[index % len(_SHADES)], _MARKERS[index % len(_MARKERS)]
        own = [row for row in rows if row["variance"] == variance and row["length"] > 1]
        lengths = np.array([row["length"] for row in own])
        measured = [row["measured_variance"] for row in own]
        line = np.geomspace(lengths.min(), lengths.max(), 60)
        axes.plot(line, (line - 1) * variance, color=colour, linewidth=1.2)
        axes.plot(lengths, measured, marker, color=colour, markersize=6, markeredgecolor="white", markeredgewidth=0.5)
        axes.annotate(
            f"σ² = {variance:g}",
            (line[-1], (line[-1] - 1) * variance),
            xytext=(9, 0),
            textcoords="offset points",
            va="center",
            annotation_clip=False,
        )
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_locator(NullLocator())
    axes.grid(axis="y")
    axes.set_title("Monte Carlo: points measured, lines (T−1)σ²")


def _draw_pwr(axes: Axes, rows: list[dict[str, Any]]) -> None:
    """A linear axis, because a logarithmic one cannot show the 0 that is to be seen here."""
    lengths, measured = [row["length"] for row in rows], [row["measured_variance"] for row in rows]
    axes.plot(lengths, measured, "s", color=COLOURS["h-pwr"], markersize=6, clip_on=False, zorder=3)
    largest = max(measured, default=0.0)
    if largest == 0.0:
        axes.set_ylim(-1, 1)
        axes.set_yticks([0])
    axes.axhline(0, color="#e2e2e2", linewidth=0.8, zorder=0)
    found = f"at most {largest:.3g}" if largest > 0 else "exactly 0"
    axes.set_title(f"PWR, weight on the last reward only: {found} for every σ²")
