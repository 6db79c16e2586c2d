"""How the gradient estimates of each advantage estimator lie around the exact policy gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from paircredit.errors import PaircreditError
from paircredit.results.charts import COLOURS, QUIET, figure, only_ticks
from paircredit.results.curves import rows
from paircredit.results.exhibits import Column, Measure, Table, exhibit, table
from paircredit.runs.read import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

_COLOUR_OF = {
    "Monte Carlo": COLOURS["regular"],
    "PWR, handcrafted weights": COLOURS["h-pwr"],
    "PWR, learned weights": COLOURS["meta-pwr"],
    "PWTD, learned weights": COLOURS["meta-pwtd"],
}
_LABELS = ("signal-to-noise ratio", "cosine with the exact gradient", "relative bias (low is good)")
_SNR_TICKS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)


@figure("estimator-quality", "Gradient estimates against the exact gradient")
def draw(runs: Sequence[Run]) -> Figure | None:
    """A row of panels per policy: signal-to-noise ratio, cosine with the exact gradient, relative bias.

    Each dot compares the policy gradient estimates of one advantage estimator with the exact gradient, all on the same
    episodes. The signal-to-noise ratio is the squared length of the mean estimate over its total variance; it says
    nothing about direction, so the cosine with the exact gradient stands beside it, and the relative bias, which counts
    a wrong length as well as a wrong direction. A small bias is also what chance alone gives, as the table says. The
    paper has no such figure; it argues that weights like the handcrafted and learned ones lower the variance of
    advantages.
    """
    found = _rows(runs)
    if not found:
        return None
    preferences = sorted({row["preference"] for row in found})
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(10, 0.9 + 2.6 * len(preferences)), layout="constrained")
    panels = drawn.subplots(len(preferences), 3, squeeze=False, sharex="col", sharey=True)
    for line, preference in zip(panels, preferences, strict=True):
        own = [row for row in found if row["preference"] == preference]
        for axes, quantity in zip(line, ("snr", "cosine", "relative_bias"), strict=True):
            _draw_dots(axes, own, quantity)
        name = f"policy with logit {preference:g} for the best action" if preference else "uniform policy"
        line[0].set_title(name)
    for axes, label in zip(panels[-1], _LABELS, strict=True):
        axes.set_xlabel(label)
    _scale(panels[-1], [row["snr"] for row in found])
    drawn.legend(handles=_legend(), loc="outside upper center", ncols=2)
    return drawn


@exhibit("estimator-quality", "Gradient estimates against the exact gradient g")
def quality_table(runs: Sequence[Run]) -> Table | None:
    """A row per policy, baseline and estimator.

    Bias by chance is the length that the bias would have from sampling alone if the estimator were unbiased.
    """
    columns = (
        Column("preference", "logit of the best action", "g"),
        Column("values", "values of the baseline"),
        Column("estimator", "estimator"),
        Column("snr", "signal-to-noise ratio", ".2f"),
        Column("cosine", "cosine", ".3f"),
        Column("variance", "variance / |g|²", ".3f"),
        Column("relative_bias", "bias / |g|", ".3f"),
        Column("bias_noise", "bias / |g| by chance", ".3f"),
    )
    return table(_rows(runs), Measure(columns, lambda row: (row[own.name] for own in columns)))


def _rows(runs: Sequence[Run]) -> list[dict[str, Any]]:
    found = [run for run in runs if run.kind == "credit"]
    if len(found) > 1:
        raise PaircreditError(
            f"Both {found[0].path} and {found[1].path} compare estimators; name a folder with only one of them."
        )
    return rows(found, "credit")


def _draw_dots(axes: Axes, rows: list[dict[str, Any]], quantity: str) -> None:
    estimators = list(dict.fromkeys(row["estimator"] for row in rows))
    for row in rows:
        exact = row["values"] == "exact"
        colour = _COLOUR_OF.get(row["estimator"], QUIET)
        axes.plot(
            [row[quantity]],
            [estimators.index(row["estimator"]) + (-0.13 if exact else 0.13)],
            "o",
            markersize=7,
            markeredgewidth=1.6,
            markeredgecolor=colour,
            markerfacecolor=colour if exact else "white",
        )
    axes.set_yticks(range(len(estimators)), estimators)
    axes.set_ylim(len(estimators) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="both")


def _scale(panels: np.ndarray, snr: list[float]) -> None:
    ratio, cosine, bias = panels
    ratio.set_xscale("log")
    ratio.set_xlim(min(snr) / 1.3, max(snr) * 1.3)
    only_ticks(ratio.xaxis, _SNR_TICKS)
    cosine.set_xlim(min(0.0, cosine.get_xlim()[0]), 1.03)
    bias.set_xlim(left=-0.03)


def _legend() -> list[Line2D]:
    from matplotlib.lines import Line2D

    kinds = (("exact values of the policy", QUIET), ("values of zero, as at the start of learning", "white"))
    return [
        Line2D([], [], marker="o", linestyle="", markersize=7, mew=1.6, mec=QUIET, mfc=fill, label=label)
        for label, fill in kinds
    ]
