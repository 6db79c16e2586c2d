"""The search in the DAG: every λ, learning rate and start of values of A2C, beside H-PWR and Meta-PWR with the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from paircredit.results.charts import LOOKS, QUIET, figure, grid, legend_above, note
from paircredit.results.curves import Curve, curves
from paircredit.results.exhibits import (
    LEAST_SEEDS,
    METHOD,
    SEEDS,
    Status,
    Table,
    claim,
    column,
    exhibit,
    interval,
    plain_table,
    table,
    title,
)
from paircredit.results.intervals import difference_of_times, median_of_times
from paircredit.runs.read import Run
from paircredit.studies.dag.measures import LABELS, evaluation_times
from paircredit.studies.dag.runs import SEARCH

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

REGULAR, LEARNED = "regular", "meta-pwr"
PRINTED_RATE = 0.01
"""The learning rate that the paper took (DAG appendix)."""


class Tried(NamedTuple):
    """What the members of a curve have for themselves; λ is A2C's alone."""

    lambda_: float
    rate: float
    start: float

    def text(self) -> str:
        """For readers."""
        return f"learning rate {self.rate:g}, values {'drawn at random' if self.start else 'at 0'}"


def tried(curve: Curve) -> Tried:
    """From recorded numbers, which may have been through single precision."""
    return Tried(*(round(float(value), 6) for value in curve.variant))


def searched(runs: Sequence[Run]) -> list[Curve]:
    """The curves of the search, by depth and method, from the largest λ to the smallest."""

    def who(run: Run, kind: tuple[Any, ...]) -> tuple[int, tuple[Any, ...]]:
        return run.spec["tags"]["depth"], kind

    found = curves(runs, SEARCH, who, ("lambda", "rate", "start"), "at depth {}".format)
    return sorted(found, key=lambda curve: (curve.place, LABELS.index(curve.label), *(-x for x in tried(curve))))


@figure("dag-search", "DAG: the regular return with every λ")
def _search(runs: Sequence[Run]) -> Figure | None:
    """Episodes to 95 % of the best return over λ, a column per depth and a row per learning rate.

    Dots are medians, bars their 95 % bootstrap intervals; filled dots start with values of 0, open ones with random
    values. A number beside a dot says how many of the policies arrived, where not all did, and no dot stands where
    half of them or fewer did. Lines are H-PWR and Meta-PWR with the same learning rate and values of 0, which have no
    λ. The appendix of the paper says that λ = 1 was the best of all, and takes a learning rate of 0.01 of the three
    that it tried.
    """
    found = searched(runs)
    depths = sorted({curve.place for curve in found})
    rates = sorted({tried(c).rate for c in found if _half(evaluation_times(c))}, reverse=True)
    if not rates:
        return None
    size = (3.5 * len(depths) + 0.6, 2.9 * len(rates) + 0.9)
    drawn, panels = grid(len(depths) * len(rates), len(depths), size, sharey="row")
    highest = {
        rate: max(np.median(times) for c in found if tried(c).rate == rate and _half(times := evaluation_times(c)))
        for rate in rates
    }
    for number, axes in enumerate(panels):
        rate, depth = rates[number // len(depths)], depths[number % len(depths)]
        _panel(axes, [c for c in found if c.place == depth and tried(c).rate == rate])
        axes.set_title(f"depth {depth}, learning rate {rate:g}")
        axes.set_ylim(0, 1.25 * highest[rate])
        if number % len(depths) == 0:
            axes.set_ylabel("episodes")
        if number >= len(panels) - len(depths):
            axes.set_xlabel("λ of the regular return")
    legend_above(drawn)
    return drawn


def _half(times: np.ndarray) -> bool:
    """Whether more than half of the policies arrived."""
    return bool(np.isfinite(np.median(times)))


def _panel(axes: Axes, found: Sequence[Curve]) -> None:
    lambdas = sorted({tried(c).lambda_ for c in found if c.label == REGULAR}, reverse=True)
    for curve in found:
        own, times = tried(curve), evaluation_times(curve)
        median, look = median_of_times(times), LOOKS[curve.label]
        if curve.label != REGULAR:
            if own.start == 0 and np.isfinite(median.estimate):
                axes.axhline(median.estimate, color=look.colour, label=title(curve.label), zorder=1, **look.line)
            continue
        if not np.isfinite(median.estimate):
            continue
        at = lambdas.index(own.lambda_) + (0.12 if own.start else -0.12)
        high = median.high if np.isfinite(median.high) else times[np.isfinite(times)].max()
        axes.plot([at, at], [median.low, high], color=look.colour, linewidth=5, alpha=0.25, zorder=2)
        name = f"{title(REGULAR)}, {'random values' if own.start else 'values at 0'}"
        face = "white" if own.start else look.colour
        axes.plot([at], [median.estimate], "o", color=look.colour, markerfacecolor=face, label=name, zorder=3)
        reached = int(np.isfinite(times).sum())
        if reached < len(times):
            place: tuple[int, int] = (5, 4) if own.start else (-4, -11)
            side = "left" if own.start else "right"
            note(axes, f"{reached}/{len(times)}", (at, median.estimate), place, fontsize=8, color=QUIET, ha=side)
    axes.set_xticks(range(len(lambdas)), [f"{value:g}" for value in lambdas])
    axes.set_xlim(-0.6, len(lambdas) - 0.4)
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.grid(axis="y")


@exhibit("dag-search", "DAG: what was searched")
def _table(runs: Sequence[Run]) -> Table | None:
    """Episodes to 95 % of the best return for everything that was tried.

    Medians with 95 % bootstrap intervals, empty where half of the policies or more did not arrive; how many arrived;
    λ is the regular return's.
    """
    found = searched(runs)
    return table(
        found,
        column("depth", "depth", lambda own: own.place),
        METHOD,
        column("lambda", "λ", lambda own: tried(own).lambda_ if own.label == REGULAR else None, "g"),
        column("rate", "learning rate", lambda own: tried(own).rate, "g"),
        column("start", "deviation of first values", lambda own: tried(own).start, "g"),
        SEEDS,
        column("reached", "arrived", lambda own: int(np.isfinite(evaluation_times(own)).sum())),
        interval("episodes", "episodes to 95 %", _cells, ",.0f"),
    )


def _cells(curve: Curve) -> list[float | None]:
    return [float(x) if np.isfinite(x) else None for x in median_of_times(evaluation_times(curve))]


def digest(runs: Sequence[Run]) -> dict[str, Table | None]:
    """Of every policy what it was tried with, and its episodes to 95 %, empty where there were not enough."""
    rows: list[list[Any]] = []
    for curve in searched(runs):
        for seed, time in zip(curve.seeds, evaluation_times(curve), strict=True):
            rows.append([curve.place, curve.label, *tried(curve), int(seed), int(time) if np.isfinite(time) else ""])
    names = ("depth", "method", "lambda", "rate", "start", "seed", "episodes")
    return {"dag-search-members.csv": plain_table(names, rows)}


def _grouped(runs: Sequence[Run]) -> dict[tuple[int, Tried], list[Curve]]:
    """Curves that differ in λ or the method alone, by depth, learning rate and start of values; only complete ones."""
    groups: dict[tuple[int, Tried], list[Curve]] = {}
    for curve in searched(runs):
        groups.setdefault((curve.place, tried(curve)._replace(lambda_=1.0)), []).append(curve)
    return {
        key: own
        for key, own in groups.items()
        if min(len(c.seeds) for c in own) >= LEAST_SEEDS
        and {REGULAR, LEARNED} <= {c.label for c in own}
        and any(_half(evaluation_times(c)) for c in own)
    }


def _reliable(group: Sequence[Curve]) -> list[Curve]:
    """The regular returns of a group with which every policy arrived; those with λ = 1 in any case."""
    regular = [c for c in group if c.label == REGULAR]
    return [c for c in regular if tried(c).lambda_ == 1 or np.isfinite(evaluation_times(c)).all()]


def _best(group: Sequence[Curve]) -> Curve:
    return min(_reliable(group), key=lambda c: (np.median(evaluation_times(c)), -tried(c).lambda_))


NOTHING = "There is no search with Meta-PWR and at least {} seeds; make it with `paircredit reproduce dag-search`."


@claim("D6", "Of all λ the regular return learns fastest with 1.", "Appendix, DAG: hyperparameters")
def _one_is_best(runs: Sequence[Run]) -> tuple[Status, str]:
    groups = {key: own for key, own in _grouped(runs).items() if key[1].rate == PRINTED_RATE}
    if not groups:
        return "not judged", NOTHING.format(LEAST_SEEDS)
    parts, faster = [], 0
    for (depth, what), own in groups.items():
        best = _best(own)
        first = next(c for c in own if c.label == REGULAR and tried(c).lambda_ == 1)
        difference = difference_of_times(evaluation_times(best), evaluation_times(first))
        faster += best is not first and difference.high < 0
        parts.append(
            f"depth {depth}, {what.text()}: {_times(first)} with λ = 1, {_times(best)} with λ = {tried(best).lambda_:g}"
        )
    text = f"The fastest λ with which all policies arrive is clearly faster than 1 in {faster} of {len(groups)} cases: "
    return ("fails" if faster else "holds"), text + "; ".join(parts) + "."


@claim(
    "D7",
    "Learned pairwise weights reach 95 % of the best return in fewer episodes than the best λ.",
    "Experiments, the first question",
)
def _against_the_best(runs: Sequence[Run]) -> tuple[Status, str]:
    groups = _grouped(runs)
    if not groups:
        return "not judged", NOTHING.format(LEAST_SEEDS)
    parts, ahead, behind = [], 0, 0
    for (depth, what), own in groups.items():
        best, learned = _best(own), next(c for c in own if c.label == LEARNED)
        difference = difference_of_times(evaluation_times(learned), evaluation_times(best))
        ahead, behind = ahead + (difference.high < 0), behind + (difference.low > 0)
        parts.append(
            f"depth {depth}, {what.text()}: Meta-PWR {_times(learned)}, λ = {tried(best).lambda_:g} {_times(best)}"
        )
    text = (
        f"Against the fastest λ with which all policies arrive, Meta-PWR is clearly faster in {ahead} of {len(groups)} "
        f"cases and clearly slower in {behind}: "
    )
    return ("holds" if ahead == len(groups) else "fails"), text + "; ".join(parts) + "."


def _times(curve: Curve) -> str:
    estimate = median_of_times(evaluation_times(curve)).estimate
    return f"{estimate:,.0f}" if np.isfinite(estimate) else "not reached"


CLAIMS = (_one_is_best, _against_the_best)
FIGURES, TABLES = (_search,), (_table,)
