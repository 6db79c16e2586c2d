"""What is shown of bsuite: the table beside the paper's, curves of every domain and of every setting of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from paircredit.results import charts
from paircredit.results.charts import Line, Panel, figure
from paircredit.results.curves import Curve, labels_of
from paircredit.results.exhibits import METHOD, Table, column, exhibit, interval, method_of, plain_table, table, title
from paircredit.results.intervals import mean_interval
from paircredit.runs.read import Run
from paircredit.studies.bsuite import measures
from paircredit.studies.bsuite.measures import (
    PAPER,
    RANDOM_PLAY,
    all_regrets,
    by_domain,
    episodes,
    members,
    settings,
    totals,
)
from paircredit.studies.bsuite.runs import ROLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

VARIED = ("catch_noise", "catch_scale", "umbrella_length", "umbrella_distract", "discounting_chain")
"""Domains whose variants differ."""
TITLES = {domain: domain.replace("_", " ").capitalize() for domain in PAPER}
MOST_POINTS = 60
"""Per curve; each is the mean over a part of training, of about the same length on a logarithmic axis."""
_FIRST_PART = 1000
"""The first point is the mean over one in this many episodes, and no later one over fewer."""
RANDOM = "random play"
_COLUMNS, _MOST_COLUMNS = 4, 6
"""Of panels: of domains, and of settings where there are many."""
_MANY_SETTINGS = 9


@figure("bsuite-regret", "bsuite: regret in the course of training")
def _regret(runs: Sequence[Run]) -> Figure | None:
    """A panel per domain with a curve per method: the mean regret of an episode against episodes.

    The mean regret of an episode against the episodes of training, over all variants and seeds of a domain; low is
    good. Bands are 95 % bootstrap intervals of the mean, in which the variants are as they are and the seeds are drawn.
    The dashed line is what random play costs. The area under a curve is the total regret, which is all that the paper
    shows.
    """
    panels = []
    for domain, methods in by_domain(runs).items():
        groups = [(own, [members(own, setting) for setting in settings(own)]) for own in methods.values()]
        panels.append(_panel(TITLES[domain], domain, groups))
    return _drawn(runs, panels, _COLUMNS)


def _settings(runs: Sequence[Run], domain: str) -> Figure | None:
    """A panel per setting of a domain with a curve per method."""
    methods = by_domain(runs).get(domain, {})
    panels = []
    for setting in _settings_of(methods):
        groups = [(own, [chosen]) for own in methods.values() if (chosen := members(own, setting)).any()]
        panels.append(_panel(setting.text or TITLES[domain], domain, groups))
    return _drawn(runs, panels, _MOST_COLUMNS if len(panels) > _MANY_SETTINGS else _COLUMNS)


def _panel(name: str, domain: str, groups: Sequence[tuple[Curve, Sequence[np.ndarray]]]) -> Panel:
    return Panel(
        name, [Line(own.label, *thinned(own), chosen) for own, chosen in groups], (RANDOM_PLAY[domain], RANDOM)
    )


def _drawn(runs: Sequence[Run], panels: Sequence[Panel], most_columns: int) -> Figure | None:
    if not panels:
        return None
    drawn, axes_of = _grid(len(panels), most_columns)
    look = charts.looks(labels_of(runs, ROLE))
    for axes, panel in zip(axes_of, panels, strict=True):
        charts.lines(axes, panel, look)
        axes.set_xscale("log")
        charts.only_ticks(axes.xaxis, None)
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    charts.finish(drawn, "episodes", "regret of an episode", last=RANDOM)
    return drawn


def _grid(count: int, most_columns: int) -> tuple[Figure, list[Axes]]:
    columns = min(most_columns, count)
    return charts.grid(count, columns, (max(2.6 * columns + 0.4, 5.6), 2.3 * math.ceil(count / columns) + 0.9))


def _settings_of(methods: Mapping[str, Curve]) -> list[measures.Setting]:
    return sorted({setting for curve in methods.values() for setting in settings(curve)})


@figure("bsuite-settings", "bsuite: regret by noise, scale, length, distractors and bonus chain")
def _totals(runs: Sequence[Run]) -> Figure | None:
    """The mean regret of all episodes of training against the setting, a panel per domain whose variants differ.

    The mean regret of all episodes of training for every setting of the domains whose variants differ, with 95 %
    bootstrap intervals over seeds; low is good. The paper has means over the variants only.
    """
    found = {domain: methods for domain, methods in by_domain(runs).items() if domain in VARIED}
    if not found:
        return None
    drawn, panels = _grid(len(found), 3)
    look = charts.looks(labels_of(runs, ROLE))
    for axes, (domain, methods) in zip(panels, found.items(), strict=True):
        places = _settings_of(methods)
        for number, curve in enumerate(methods.values()):
            shift = 0.6 * ((number + 0.5) / len(methods) - 0.5)
            own, name = look[curve.label], title(curve.label)
            for place, setting in enumerate(places):
                chosen = members(curve, setting)
                if chosen.any():
                    mean = mean_interval(totals(curve)[chosen] / episodes(curve))
                    x = place + shift
                    axes.plot([x, x], [mean.low, mean.high], color=own.colour, linewidth=2.2, alpha=0.45)
                    axes.plot([x], [mean.estimate], own.marker, color=own.colour, markersize=4.5, mew=0, label=name)
        charts.dashed(axes, RANDOM_PLAY[domain], RANDOM)
        shown = range(0, len(places), 1 if len(places) <= _MANY_SETTINGS else 4)
        axes.set_xticks(list(shown), [f"{places[place].value:g}" for place in shown])
        axes.set_ylim(bottom=0)
        axes.set_xlabel("bonus after steps" if domain == "discounting_chain" else places[0].text.rpartition(" ")[0])
        axes.set_title(TITLES[domain], fontsize=11)
        axes.grid(axis="y")
    charts.finish(drawn, "", "mean regret of an episode", last=RANDOM)
    return drawn


def thinned(curve: Curve, points: int = MOST_POINTS) -> tuple[np.ndarray, np.ndarray]:
    """Episodes [P] and mean regrets [N, P], over parts of training that grow with the episodes."""
    edges = curve.edges["episodes"]
    wanted = np.unique(np.searchsorted(edges, np.geomspace(max(1, edges[-1] / _FIRST_PART), edges[-1], points + 1)))
    begins = [0]  # rows of single episodes, which logs of bsuite are made of, are no part of their own
    for begin in wanted[(wanted > 0) & (wanted < len(edges) - 1)]:
        if edges[begin] - edges[begins[-1]] >= edges[-1] / _FIRST_PART:
            begins.append(int(begin))
    sums = np.add.reduceat(curve.values["regret"] * np.diff(edges), begins, axis=1)
    kept = np.append(edges[begins], edges[-1])
    return (kept[:-1] + 1 + kept[1:]) / 2, sums / np.diff(kept)


@exhibit("bsuite-regret", "bsuite: total regret beside the paper's")
def _table(runs: Sequence[Run]) -> Table | None:
    """A row per domain and method, beside the paper's numbers.

    The regret of all episodes of a training, mean over all variants and seeds, with 95 % bootstrap intervals in which
    seeds are drawn and variants are not. The paper's numbers stand beside trainings of the same length. Its numbers for
    cartpole do not fit bsuite's definition, so that only ratios to A2C can be compared there.
    """
    found = by_domain(runs)

    def paper(curve: Curve) -> int | None:
        return PAPER[curve.place].get(method_of(curve.label)) if measures.as_long_as_the_papers(curve) else None

    def of_paper(curve: Curve) -> float | None:
        theirs = paper(curve)
        return None if theirs is None or curve.place in measures.OTHER_SCALE else measures.mean_total(curve) / theirs

    def of_a2c(curve: Curve) -> float | None:
        a2c = found[curve.place].get("a2c")
        if a2c is None or episodes(a2c) != episodes(curve):
            return None
        return measures.mean_total(curve) / float(totals(a2c).mean())

    def of_a2c_paper(curve: Curve) -> float | None:
        theirs = paper(curve)
        return None if theirs is None else theirs / PAPER[curve.place]["a2c"]

    return table(
        all_regrets(runs),
        column("domain", "domain", lambda own: own.place),
        METHOD,
        column("members", "members", lambda own: len(own.seeds)),
        column("episodes", "episodes", episodes, ",.0f"),
        interval("total_regret", "total regret", measures.total_regret, ",.0f", ends=""),
        column("paper", "paper", paper, ",.0f"),
        column("of_paper", "ours / paper", of_paper, ".3f"),
        column("of_a2c", "method / A2C", of_a2c, ".3f"),
        column("of_a2c_paper", "method / A2C, paper", of_a2c_paper, ".3f"),
    )


@exhibit("bsuite-settings", "bsuite: total regret by setting")
def _settings_table(runs: Sequence[Run]) -> Table | None:
    """A row per setting of every domain and method.

    The same for every setting of a domain; variants that are alike count as further seeds. Intervals are 95 % bootstrap
    intervals of the mean over members, beside the smallest and the largest of them.
    """

    def regrets(pair: Any) -> np.ndarray:
        return totals(pair[0])[members(*pair)]

    return table(
        [(own, setting) for own in all_regrets(runs) for setting in settings(own)],
        column("domain", "domain", lambda pair: pair[0].place),
        column("setting", "setting", lambda pair: pair[1].text or "all alike"),
        column("method", "method", lambda pair: title(pair[0].label)),
        column("members", "members", lambda pair: len(regrets(pair))),
        column("episodes", "episodes", lambda pair: episodes(pair[0]), ",.0f"),
        interval("total_regret", "total regret", lambda pair: mean_interval(regrets(pair)), ",.0f", ends=""),
        column("smallest", "smallest", lambda pair: float(regrets(pair).min()), ",.0f"),
        column("largest", "largest", lambda pair: float(regrets(pair).max()), ",.0f"),
    )


def digest(runs: Sequence[Run]) -> dict[str, Table | None]:
    """The total regret of every member; and curves by setting, mean and deviation over members."""
    found = all_regrets(runs)
    return {
        "bsuite-members.csv": plain_table(
            ("method", "bsuite_id", "seed", "episodes", "total_regret"),
            (
                (own.label, name, seed, episodes(own), round(total, 3))
                for own in found
                for name, seed, total in zip(
                    own.marks["bsuite_id"].tolist(), own.seeds.tolist(), totals(own).tolist(), strict=True
                )
            ),
        ),
        "bsuite-curves.csv": plain_table(
            ("domain", "setting", "method", "members", "episode", "mean", "deviation"),
            (row for own in found for row in _points(own)),
        ),
    }


def _points(curve: Curve) -> list[list[Any]]:
    at, values = thinned(curve)
    rows: list[list[Any]] = []
    for setting in settings(curve):
        own = values[members(curve, setting)]
        names = [curve.place, setting.text, curve.label, len(own)]
        for episode, mean, deviation in zip(at, own.mean(axis=0), own.std(axis=0), strict=True):
            rows.append([*names, float(episode), round(float(mean), 5), round(float(deviation), 5)])
    return rows


FIGURES = (
    _regret,
    _totals,
    *(
        figure(
            f"bsuite-curves-{domain.replace('_', '-')}",
            f"bsuite: {TITLES[domain].lower()}, every setting",
            "The mean regret of an episode against the episodes of training, a panel per setting of the domain. Lines "
            "are means over seeds, bands are 95 % bootstrap intervals, and the dashed line is random play. The paper "
            "does not show these.",
            domain=domain,
        )(_settings)
        for domain in VARIED
    ),
)
TABLES = (_table, _settings_table)
