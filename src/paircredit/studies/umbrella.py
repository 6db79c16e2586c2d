"""The umbrella: how noisy is the advantage of the one decision that counts (the paper's illustrative analysis)?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from paircredit.experiments.spec import Recipe, UmbrellaVarianceSpec
from paircredit.results.charts import COLOURS, figure, note, only_ticks
from paircredit.results.curves import rows
from paircredit.results.exhibits import Status, Table, claim, column, exhibit, table
from paircredit.runs.read import Run
from paircredit.studies.study import Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KIND = "umbrella-variance"
MONTE_CARLO, PWR = "Monte Carlo", "PWR"
VARIANCE_TOLERANCE = 0.05
BIAS_ERRORS = 4.0
"""A mean within this many standard errors of the exact one counts as unbiased."""
_SHADES = ("#b0b0b0", "#7d7d7d", "#4d4d4d", "#1a1a1a")
_MARKERS = ("o", "s", "^", "D")
_MEAN = 0.5
_SCALES = {
    "smoke": UmbrellaVarianceSpec(KIND, (5, 10), (1.0,), _MEAN, 20_000),
    "short": UmbrellaVarianceSpec(KIND, (2, 5, 10, 20, 50), (0.25, 1.0, 4.0), _MEAN, 40_000),
    "paper": UmbrellaVarianceSpec(KIND, (2, 5, 10, 20, 50, 100), (0.25, 1.0, 4.0, 25.0), _MEAN, 100_000),
}


@figure("umbrella-variance", "Umbrella: variance of the decision's advantage")
def _figure(runs: Sequence[Run]) -> Figure | None:
    """Variance against length for every σ², and the variance of PWR in a strip of its own below.

    The morning's decision alone determines the last reward, and T−1 noisy rewards of variance σ² lie between. Points
    are the measured variance of the first action's Monte Carlo advantage, two per length because there are two actions;
    lines are the prediction (T−1)σ². The strip below shows pairwise weighted rewards with weight on the last reward
    only, on a linear axis because a logarithmic one has no 0. The paper derives both and draws neither: (T−1)σ² for
    Monte Carlo, exactly 0 for the pairwise weights.
    """
    found = rows(runs, KIND)
    if not found:
        return None
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(8, 5.6), layout="constrained")
    upper, strip = drawn.subplots(2, 1, sharex=True, height_ratios=(5, 1))
    _draw_monte_carlo(upper, [row for row in found if row["estimator"] == MONTE_CARLO])
    _draw_pwr(strip, [row for row in found if row["estimator"] == PWR])
    lengths = sorted({row["length"] for row in found})
    strip.set_xscale("log")
    only_ticks(strip.xaxis, [float(length) for length in lengths])
    strip.set_xlabel("length T of an episode")
    drawn.supylabel("variance of the first action's advantage", fontsize=11)
    return drawn


@exhibit("umbrella-variance", "Variance of the first action's advantage")
def _table(runs: Sequence[Run]) -> Table | None:
    """A row per MDP and first action: predicted and measured variances.

    Predicted and measured for Monte Carlo, measured for pairwise weights on the last reward only.
    """
    found = rows(runs, KIND)
    quiet = {_case(row): row["measured_variance"] for row in found if row["estimator"] == PWR}

    def ratio(row: dict[str, Any]) -> float | None:
        return row["measured_variance"] / row["predicted_variance"] if row["predicted_variance"] > 0 else None

    return table(
        [row for row in found if row["estimator"] == MONTE_CARLO],
        column("length", "T", lambda row: row["length"]),
        column("noise_variance", "σ²", lambda row: row["variance"], "g"),
        column("first_action", "first action", lambda row: row["action"]),
        column("episodes", "episodes", lambda row: row["episodes"], ",d"),
        column("monte_carlo_predicted", "(T−1)σ²", lambda row: row["predicted_variance"], ".6g"),
        column("monte_carlo_measured", "Monte Carlo, measured", lambda row: row["measured_variance"], "#.5g"),
        column("ratio", "measured / predicted", ratio, ".3f"),
        column("pwr_measured", "PWR, measured", lambda row: quiet.get(_case(row)), ".3g"),
    )


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
        plain: dict[str, Any] = {"va": "center", "annotation_clip": False, "fontsize": 11, "color": "black"}
        note(axes, f"σ² = {variance:g}", (line[-1], (line[-1] - 1) * variance), (9, 0), **plain)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    only_ticks(axes.yaxis, None)
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


@claim(
    "U1",
    "With weight on the last reward only, PWR is unbiased and has no variance; Monte Carlo has variance (T−1)σ².",
    "Pairwise Weights for Advantages, illustrative analysis",
)
def _claim(runs: Sequence[Run]) -> tuple[Status, str]:
    found = rows(runs, KIND)
    if not found:
        return "not judged", "There are no runs of the umbrella MDP."
    noisy = [row for row in found if row["estimator"] == MONTE_CARLO]
    quiet = [row for row in found if row["estimator"] == PWR]
    ratios = [row["measured_variance"] / row["predicted_variance"] for row in noisy]
    worst = max(ratios, key=lambda ratio: abs(ratio - 1))
    largest = max(row["measured_variance"] for row in quiet)
    biased = [
        row
        for row in found
        if abs(row["mean"] - row["exact_mean"]) > BIAS_ERRORS * row["standard_error"] + 1e-6 * abs(row["exact_mean"])
    ]
    good = abs(worst - 1) <= VARIANCE_TOLERANCE and largest == 0.0 and not biased
    return "holds" if good else "fails", (
        f"Over {len(noisy)} cases (length × variance × action) the Monte Carlo variance is {min(ratios):.3f} to "
        f"{max(ratios):.3f} times (T−1)σ²; the largest PWR variance is {largest:g}; {len(biased)} of {len(found)} "
        f"means are further than {BIAS_ERRORS:g} standard errors from the exact advantage."
    )


_RUNS = Recipe("umbrella", "variance of the decision's advantage in the umbrella MDP", _SCALES, lambda spec: [spec])
UMBRELLA = Study((_RUNS,), (_figure,), (_table,), (_claim,))
