"""Regret on bsuite: the table beside the paper's, curves of every domain and of every setting of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from paircredit.analysis.bsuite_results import (
    OTHER_SCALE,
    PAPER,
    RANDOM_PLAY,
    Regrets,
    Setting,
    all_regrets,
    as_long_as_the_papers,
    by_domain,
    method_labels,
    total_regret,
)
from paircredit.analysis.shown import method_of, title
from paircredit.analysis.statistics import grouped_mean_band, mean_interval
from paircredit.figures.style import QUIET, Look, legend_above, looks, styled
from paircredit.figures.tables import Cell, Column, Table
from paircredit.runs.read import Run

VARIED = ("catch_noise", "catch_scale", "umbrella_length", "umbrella_distract", "discounting_chain")
"""Domains whose variants differ."""
TITLES = {domain: domain.replace("_", " ").capitalize() for domain in PAPER}
MOST_POINTS = 60
"""Per curve; each is the mean over a part of training, of about the same length on a logarithmic axis."""
_FIRST_PART = 1000
"""The first point is the mean over one in so many episodes, and no later one over fewer."""
RANDOM = "random play"
_COLUMNS, _MOST_COLUMNS = 4, 6
"""Of panels: of domains, and of settings where there are many."""
_MANY_SETTINGS = 9
_TOTALS = (
    Column("members", "members"),
    Column("episodes", "episodes", ",.0f"),
    Column("total_regret", "total regret", ",.0f"),
    Column("low", "from", ",.0f"),
    Column("high", "to", ",.0f"),
)
"""What both tables have."""


@styled
def draw(runs: Sequence[Run]) -> Figure | None:
    """A panel per domain with a curve per method: the mean regret of an episode against episodes."""
    found = by_domain(runs)
    if not found:
        return None
    figure, panels = _panels(len(found), _COLUMNS)
    look = looks(method_labels(runs))
    for axes, (domain, methods) in zip(panels, found.items(), strict=True):
        for regrets in methods.values():
            groups = [regrets.members(setting) for setting in regrets.settings]
            _curve(axes, regrets, groups, look[regrets.label])
        _finish(axes, domain, TITLES[domain])
    _labels(figure)
    return figure


@styled
def draw_settings(runs: Sequence[Run], domain: str) -> Figure | None:
    """A panel per setting of a domain with a curve per method."""
    methods = by_domain(runs).get(domain)
    if not methods:
        return None
    settings = _settings_of(methods)
    figure, panels = _panels(len(settings), _MOST_COLUMNS if len(settings) > _MANY_SETTINGS else _COLUMNS)
    look = looks(method_labels(runs))
    for axes, setting in zip(panels, settings, strict=True):
        for regrets in methods.values():
            members = regrets.members(setting)
            if members.any():
                _curve(axes, regrets, [members], look[regrets.label])
        _finish(axes, domain, setting.text)
    _labels(figure)
    return figure


@styled
def draw_totals(runs: Sequence[Run]) -> Figure | None:
    """The mean regret of all episodes of training against the setting, a panel per domain whose variants differ."""
    found = {domain: methods for domain, methods in by_domain(runs).items() if domain in VARIED}
    if not found:
        return None
    figure, panels = _panels(len(found), 3)
    look = looks(method_labels(runs))
    for axes, (domain, methods) in zip(panels, found.items(), strict=True):
        settings = _settings_of(methods)
        for number, regrets in enumerate(methods.values()):
            shift = 0.6 * ((number + 0.5) / len(methods) - 0.5)
            own, name = look[regrets.label], title(regrets.label)
            for place, setting in enumerate(settings):
                members = regrets.members(setting)
                if not members.any():
                    continue
                totals = mean_interval(regrets.totals[members] / regrets.episodes)
                x = place + shift
                axes.plot([x, x], [totals.low, totals.high], color=own.colour, linewidth=2.2, alpha=0.45)
                axes.plot([x], [totals.estimate], own.marker, color=own.colour, markersize=4.5, mew=0, label=name)
        axes.axhline(RANDOM_PLAY[domain], color=QUIET, linewidth=1.1, linestyle="--", zorder=1, label=RANDOM)
        shown = range(0, len(settings), 1 if len(settings) <= _MANY_SETTINGS else 4)
        axes.set_xticks(list(shown), [f"{settings[place].value:g}" for place in shown])
        axes.set_ylim(bottom=0)
        axes.set_xlabel(settings[0].text.rpartition(" ")[0] if domain != "discounting_chain" else "bonus after steps")
        axes.set_title(TITLES[domain], fontsize=11)
        axes.grid(axis="y")
    figure.supylabel("mean regret of an episode", fontsize=11)
    legend_above(figure, last=RANDOM)
    return figure


def _settings_of(methods: Mapping[str, Regrets]) -> list[Setting]:
    return sorted({setting for regrets in methods.values() for setting in regrets.settings})


def _panels(count: int, most_columns: int) -> tuple[Figure, list[Axes]]:
    columns = min(most_columns, count)
    rows = math.ceil(count / columns)
    figure = Figure(figsize=(max(2.6 * columns + 0.4, 5.6), 2.3 * rows + 0.9), layout="constrained")
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes in panels[count:]:
        axes.set_visible(False)
    return figure, panels[:count]


def _curve(axes: Axes, regrets: Regrets, groups: Sequence[np.ndarray], look: Look) -> None:
    """Mean and band of one method over the members of some groups."""
    middles, values = thinned(regrets)
    low, high = grouped_mean_band([values[members] for members in groups])
    axes.fill_between(middles, low, high, color=look.colour, alpha=0.2, linewidth=0)
    mean = values[np.any(groups, axis=0)].mean(axis=0)
    axes.plot(middles, mean, color=look.colour, label=title(regrets.label), **look.line)


def _finish(axes: Axes, domain: str, text: str) -> None:
    axes.axhline(RANDOM_PLAY[domain], color=QUIET, linewidth=1.1, linestyle="--", zorder=1, label=RANDOM)
    axes.set_xscale("log")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    axes.set_title(text or TITLES[domain], fontsize=11)
    axes.grid()


def _labels(figure: Figure) -> None:
    figure.supxlabel("episodes", fontsize=11)
    figure.supylabel("regret of an episode", fontsize=11)
    legend_above(figure, last=RANDOM)


def thinned(regrets: Regrets, points: int = MOST_POINTS) -> tuple[np.ndarray, np.ndarray]:
    """Episodes [P] and mean regrets [N, P], over parts of training that grow with the episodes."""
    edges = regrets.edges
    wanted = np.unique(np.searchsorted(edges, np.geomspace(max(1, edges[-1] / _FIRST_PART), edges[-1], points + 1)))
    begins = [0]  # rows of single episodes, which logs of bsuite are made of, are no part of their own
    for begin in wanted[(wanted > 0) & (wanted < len(edges) - 1)]:
        if edges[begin] - edges[begins[-1]] >= edges[-1] / _FIRST_PART:
            begins.append(int(begin))
    sizes = np.diff(edges)
    sums = np.add.reduceat(regrets.values * sizes, begins, axis=1)
    kept = np.append(edges[begins], edges[-1])
    return (kept[:-1] + 1 + kept[1:]) / 2, sums / np.diff(kept)


def table(runs: Sequence[Run]) -> Table | None:
    """A row per domain and method, beside the paper's numbers."""
    found = by_domain(runs)
    if not found:
        return None
    columns = (
        Column("domain", "domain"),
        Column("method", "method"),
        *_TOTALS,
        Column("paper", "paper", ",.0f"),
        Column("of_paper", "ours / paper", ".3f"),
        Column("of_a2c", "method / A2C", ".3f"),
        Column("of_a2c_paper", "method / A2C, paper", ".3f"),
    )
    rows = [_row(regrets, methods) for methods in found.values() for regrets in methods.values()]
    return Table(columns, tuple(rows))


def _row(regrets: Regrets, methods: Mapping[str, Regrets]) -> tuple[Cell, ...]:
    total, paper = total_regret(regrets), PAPER[regrets.domain]
    theirs = paper.get(method_of(regrets.label)) if as_long_as_the_papers(regrets) else None
    a2c = methods.get("a2c")
    comparable = theirs is not None and regrets.domain not in OTHER_SCALE
    return (
        regrets.domain,
        title(regrets.label),
        len(regrets.seeds),
        regrets.episodes,
        *total,
        theirs,
        total.estimate / theirs if theirs is not None and comparable else None,
        total.estimate / float(a2c.totals.mean()) if a2c is not None and a2c.episodes == regrets.episodes else None,
        theirs / paper["a2c"] if theirs is not None else None,
    )


def settings_table(runs: Sequence[Run]) -> Table | None:
    """A row per setting of every domain and method."""
    found = all_regrets(runs)
    if not found:
        return None
    columns = (
        Column("domain", "domain"),
        Column("setting", "setting"),
        Column("method", "method"),
        *_TOTALS,
        Column("smallest", "smallest", ",.0f"),
        Column("largest", "largest", ",.0f"),
    )
    rows: list[tuple[Cell, ...]] = []
    for regrets in found:
        for setting in regrets.settings:
            own = regrets.totals[regrets.members(setting)]
            name = (regrets.domain, setting.text or "all alike", title(regrets.label))
            numbers = (*mean_interval(own), float(own.min()), float(own.max()))
            rows.append((*name, len(own), regrets.episodes, *numbers))
    return Table(columns, tuple(rows))
