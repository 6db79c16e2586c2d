"""Runs of `paircredit train`, on whichever environment and with whichever method: what they recorded and learned."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from paircredit.results.charts import Line, Panel, grid, legend_above, lines, looks, short, styled, ticks
from paircredit.results.curves import RETURN, Curve, whole_curve
from paircredit.results.exhibits import Exhibit, Table, column, interval, table
from paircredit.results.intervals import mean_interval
from paircredit.results.names import LABELS, OF_ERRORS, environment_name, in_order, runs_of, title
from paircredit.results.pictures import PAIR_AXES, PairAxes, Picture, later, pictures
from paircredit.runs.read import Run
from paircredit.studies.study import Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OWN = "train"
"""The role of such runs."""
MOST_POINTS = 100
"""Per curve; each is the mean over a part of training."""
MOST_PANELS = 12
"""Of learned weights."""
_COLUMNS = 4


@dataclasses.dataclass(frozen=True)
class OwnRun:
    """A run, and what it is called beside others.

    Attributes:
        run: on disk.
        place: its environment; with the settings that differ, where runs are on several of the same name.
        label: its method, and after a comma what tells it from other runs of the method on the place.
        curve: what it recorded; None where that is too little.
    """

    run: Run
    place: str
    label: str
    curve: Curve | None

    @property
    def quantities(self) -> list[str]:
        """What it recorded, the return first."""
        return sorted(self.curve.values, key=lambda name: name != RETURN) if self.curve else []

    @property
    def scores(self) -> np.ndarray | None:
        """The mean return over the last tenth, of every member."""
        return self.curve.scores() if self.curve and RETURN in self.curve.values else None


def own_runs(runs: Sequence[Run]) -> list[OwnRun]:
    """The runs of `paircredit train`, by environment, method and folder."""
    found = runs_of(runs, OWN)
    if not found:
        return []
    settings = [run.spec["env_settings"] for run in found]
    places = _places([(environment_name(run.spec["env"], own), own) for run, own in zip(found, settings, strict=True)])
    kinds = [(place, run.spec["method"]) for place, run in zip(places, found, strict=True)]
    folders = _short_names([run.path for run in found])
    named = [
        OwnRun(run, place, method if kinds.count((place, method)) == 1 else f"{method}, {folder}", whole_curve(run))
        for run, (place, method), folder in zip(found, kinds, folders, strict=True)
    ]
    return sorted(named, key=lambda own: (own.place, _rank(own.run.spec["method"]), own.label))


def _rank(method: str) -> int:
    return LABELS.index(method) if method in LABELS else len(LABELS)


def _places(environments: Sequence[tuple[str, dict[str, Any]]]) -> list[str]:
    """Names of environments, with the settings in which those of the same name differ."""
    names = []
    for env, settings in environments:
        others = [other for name, other in environments if name == env]
        differing = [key for key in settings if len({json.dumps(other.get(key)) for other in others}) > 1]
        changes = ", ".join(f"{key} {_text(settings[key])}" for key in differing)
        names.append(f"{env}, {changes}" if changes else env)
    return names


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _short_names(paths: Sequence[Path]) -> list[str]:
    """The names of the folders, with those above them where a name occurs twice."""
    if len({path.name for path in paths}) == len(paths):
        return [path.name for path in paths]
    above = os.path.commonpath([path.resolve() for path in paths])
    return [path.resolve().relative_to(above).as_posix() for path in paths]


@styled
def _curves(runs: Sequence[Run]) -> Figure | None:
    """A panel per environment and quantity with a curve per run, against frames."""
    shown = [own for own in own_runs(runs) if own.curve]
    if not shown:
        return None
    panels = list(
        dict.fromkeys(
            (own.place, name) for own in shown for name in own.quantities if name == RETURN or _moves(own, name)
        )
    )
    one_place = len({place for place, _ in panels}) == 1
    in_a_square = min(math.ceil(len(panels) ** 0.5), _COLUMNS)
    columns = len(panels) if len(panels) <= _COLUMNS else in_a_square
    size = max(3.3 * columns + 0.4, 6.4), 2.7 * math.ceil(len(panels) / columns) + 0.9
    figure, axes_of = grid(len(panels), columns, size)
    look = looks(in_order({own.label for own in shown}))
    for axes, (place, name) in zip(axes_of, panels, strict=True):
        curves = [
            Line(own.label, *own.curve.thinned(name, MOST_POINTS))
            for own in shown
            if own.place == place and own.curve and name in own.curve.values
        ]
        quantity = name.replace("_", " ")
        lines(axes, Panel(f"{place}: {quantity}" if one_place else place, curves), look)
        if not one_place:
            axes.set_ylabel(quantity)
        axes.set_xlim(left=0)
        ticks(axes.xaxis, 4, short)
        ticks(axes.yaxis, 5, short)
    figure.supxlabel("frames", fontsize=11)
    legend_above(figure)
    return figure


def _moves(own: OwnRun, quantity: str) -> bool:
    """Whether there is anything to see; the length of episodes may always be the same."""
    assert own.curve is not None
    values = own.curve.values[quantity]
    return bool((values != values.flat[0]).any())


def _table(runs: Sequence[Run]) -> Table | None:
    """A row per run: what was trained, and its return over the last tenth."""

    def changed(own: OwnRun) -> str:
        return ", ".join(f"{name} {value}" for name, value in own.run.spec["method_settings"].items()) or "none"

    def returns(own: OwnRun) -> Sequence[float | None]:
        scores = own.scores
        if scores is None:
            return None, None, None
        # Of one seed nobody can say how far others would lie from it.
        return (float(scores[0]), None, None) if len(scores) == 1 else mean_interval(scores)

    return table(
        own_runs(runs),
        column("run", "run", lambda own: own.run.path.name),
        column("environment", "environment", lambda own: own.place),
        column("method", "method", lambda own: title(own.run.spec["method"])),
        column("preset", "preset", lambda own: own.run.spec["preset"]),
        column("settings", "changed settings", changed),
        column("seeds", "seeds", lambda own: len(own.run.spec["seeds"])),
        column("frames", "frames", lambda own: own.curve and own.curve.trained, ",.0f"),
        interval("episode_return", "return", returns, ",.3f", ends=""),
    )


@styled
def _weights(runs: Sequence[Run]) -> Figure | None:
    """A picture per run that has learned weights."""
    found = [(own, pairs) for own in own_runs(runs) if own.run.finished and (pairs := _pairs(own)) is not None]
    if not found:
        return None
    shown = found[:MOST_PANELS]
    one_place = len({own.place for own, _ in shown}) == 1
    panels = []
    for own, (weights, axes, of) in shown:
        seeds = len(own.run.spec["seeds"])
        name = title(own.label) if one_place else f"{own.place}\n{title(own.label)}"
        name += ", one seed" if seeds == 1 else f", mean of {seeds} seeds"
        weighed = "TD error" if own.run.spec["method"] in OF_ERRORS else "reward"
        panels.append(Picture(name, weights, axes, f"{of} of the {weighed}", f"{of} of the action"))
    figure = pictures(
        panels, _COLUMNS, lambda columns, rows: (max(3.6 * columns + 0.9, 5.4), 3.9 * rows + 0.3), title_size=11, pad=20
    )
    told = [shown[0][0].place] if one_place else []
    told += [f"the first {len(shown)} of {len(found)} runs"] if len(shown) < len(found) else []
    figure.suptitle(", ".join(told), fontsize=11, color="#555555")
    return figure


def _pairs(own: OwnRun) -> tuple[np.ndarray, PairAxes, str] | None:
    """The mean over seeds of weights by state [S, S] or by step [T, T], how they are shown, and which they are.

    None where there are no weights of pairs: a method may have learned something else instead.
    """
    arrays, spec = own.run.arrays(), own.run.spec
    weights, logits = arrays.get("weights"), arrays.get("policy_logits")
    if weights is None or weights.ndim != 3 or weights.shape[1] != weights.shape[2]:
        return None
    by_state = logits is not None and logits.shape[1] == weights.shape[1]
    own_axes = (
        PAIR_AXES[spec["env"]](spec["env_settings"], weights.shape[1:], by_state) if spec["env"] in PAIR_AXES else None
    )
    usual = PairAxes(np.ma.masked_array if by_state else later)
    return weights.mean(axis=0, dtype=float), own_axes or usual, "state" if by_state else "step"


FIGURES = (
    Exhibit(
        "training-curves",
        "Own runs: learning curves",
        "What runs of paircredit train recorded in the course of training, against frames: a panel per environment "
        "and quantity, a curve per run. Lines are means over seeds, bands are 95 % bootstrap intervals of the mean. "
        "Runs of the same method are told apart by their folders. They are no part of the paper's experiments.",
        _curves,
    ),
    Exhibit(
        "training-weights",
        "Own runs: pair weights",
        "Each cell is the weight with which what arrives in the state (or at the step) of the column counts for an "
        "action in the state (or at the step) of the row, at the end of training. Steps are of the episodes or "
        "segments of the last batch, over which the weights of networks are averaged. The paper shows such pictures of "
        "its DAG and of Key-to-Door.",
        _weights,
    ),
)
TABLES = (
    Exhibit(
        "training-runs",
        "Own runs: returns",
        "Mean returns over the last tenth of the training of every run of paircredit train, with 95 % bootstrap "
        "intervals over seeds where there are several. Settings are those of the method that differ from the preset.",
        _table,
    ),
)
OWN_RUNS = Study((), FIGURES, TABLES)
