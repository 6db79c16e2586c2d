"""Runs of `paircredit train`, on whichever environment and with whichever method: what they recorded and learned."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from paircredit.results.charts import Line, Panel, figure, finish, grid, lines, looks, short, ticks
from paircredit.results.curves import RETURN, Curve, runs_of, whole_curve
from paircredit.results.exhibits import (
    LABELS,
    OF_ERRORS,
    Table,
    column,
    environment_name,
    exhibit,
    in_order,
    interval,
    table,
    title,
)
from paircredit.results.intervals import mean_interval
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


class OwnRun(NamedTuple):
    """A run, what it is called beside others, and what it recorded, if that is enough for a curve.

    The place is its environment, with settings that differ among those of the same name; the label is its method, and
    after a comma what tells it from other runs of the method there.
    """

    run: Run
    place: str
    label: str
    curve: Curve | None

    @property
    def quantities(self) -> list[str]:
        """What it recorded, the return first."""
        return sorted(self.curve.values, key=lambda name: name != RETURN) if self.curve else []

    def moves(self, quantity: str) -> bool:
        """Whether there is anything to see; the length of episodes may always be the same."""
        return self.curve is not None and bool((self.curve.values[quantity] != self.curve.values[quantity][0, 0]).any())

    @property
    def scores(self) -> np.ndarray | None:
        """The mean return over the last tenth, of every member."""
        return self.curve.scores() if self.curve and RETURN in self.curve.values else None


def own_runs(runs: Sequence[Run]) -> list[OwnRun]:
    """The runs of `paircredit train`, by environment, method and folder."""
    found = runs_of(runs, OWN)
    kinds = [(_place(run, found), run.spec["method"]) for run in found]
    named = []
    for run, (place, method) in zip(found, kinds, strict=True):
        label = method if kinds.count((place, method)) == 1 else f"{method}, {_folder(run, found)}"
        named.append(OwnRun(run, place, label, whole_curve(run)))
    rank = {label: place for place, label in enumerate(LABELS)}
    return sorted(named, key=lambda own: (own.place, rank.get(own.run.spec["method"], len(rank)), own.label))


def _environment(run: Run) -> str:
    return environment_name(run.spec["env"], run.spec["env_settings"])


def _place(run: Run, runs: Sequence[Run]) -> str:
    """The name of a run's environment, with the settings in which those of the same name differ."""
    own = run.spec["env_settings"]
    others = [other.spec["env_settings"] for other in runs if _environment(other) == _environment(run)]
    differing = [key for key in own if len({json.dumps(other.get(key)) for other in others}) > 1]
    texts = [f"{key} {own[key]:g}" if isinstance(own[key], float) else f"{key} {own[key]}" for key in differing]
    return ", ".join([_environment(run), *texts])


def _folder(run: Run, runs: Sequence[Run]) -> str:
    """The name of a run's folder, with those above it where a name occurs twice."""
    if len({other.path.name for other in runs}) == len(runs):
        return run.path.name
    above = os.path.commonpath([other.path.resolve() for other in runs])
    return run.path.resolve().relative_to(above).as_posix()


@figure("training-curves", "Own runs: learning curves")
def _curves(runs: Sequence[Run]) -> Figure | None:
    """A panel per environment and quantity with a curve per run, against frames.

    What runs of paircredit train recorded in the course of training, against frames: a panel per environment and
    quantity, a curve per run. Lines are means over seeds, bands are 95 % bootstrap intervals of the mean. Runs of the
    same method are told apart by their folders. They are no part of the paper's experiments.
    """
    shown = [own for own in own_runs(runs) if own.curve]
    if not shown:
        return None
    moving = ((own.place, name) for own in shown for name in own.quantities if name == RETURN or own.moves(name))
    panels = list(dict.fromkeys(moving))
    one_place = len({place for place, _ in panels}) == 1
    in_a_square = min(math.ceil(len(panels) ** 0.5), _COLUMNS)
    columns = len(panels) if len(panels) <= _COLUMNS else in_a_square
    size = max(3.3 * columns + 0.4, 6.4), 2.7 * math.ceil(len(panels) / columns) + 0.9
    drawn, axes_of = grid(len(panels), columns, size)
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
    finish(drawn, "frames", "")
    return drawn


@exhibit("training-runs", "Own runs: returns")
def _table(runs: Sequence[Run]) -> Table | None:
    """A row per run: what was trained, and its return over the last tenth.

    Mean returns over the last tenth of the training of every run of paircredit train, with 95 % bootstrap intervals
    over seeds where there are several. Settings are those of the method that differ from the preset.
    """

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


@figure("training-weights", "Own runs: pair weights")
def _weights(runs: Sequence[Run]) -> Figure | None:
    """A picture per run that has learned weights.

    Each cell is the weight with which what arrives in the state (or at the step) of the column counts for an action in
    the state (or at the step) of the row, at the end of training. Steps are of the episodes or segments of the last
    batch, over which the weights of networks are averaged. The paper shows such pictures of its DAG and of Key-to-Door.
    """
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
    drawn = pictures(
        panels, _COLUMNS, lambda columns, rows: (max(3.6 * columns + 0.9, 5.4), 3.9 * rows + 0.3), title_size=11, pad=20
    )
    told = [shown[0][0].place] if one_place else []
    told += [f"the first {len(shown)} of {len(found)} runs"] if len(shown) < len(found) else []
    drawn.suptitle(", ".join(told), fontsize=11, color="#555555")
    return drawn


def _pairs(own: OwnRun) -> tuple[np.ndarray, PairAxes, str] | None:
    """The mean over seeds of weights by state [S, S] or by step [T, T], how they are shown, and which they are.

    None where there are no weights of pairs: a method may have learned something else instead.
    """
    arrays, spec = own.run.arrays(), own.run.spec
    weights, logits = arrays.get("weights"), arrays.get("policy_logits")
    if weights is None or weights.ndim != 3 or weights.shape[1] != weights.shape[2]:
        return None
    by_state = logits is not None and logits.shape[1] == weights.shape[1]
    own_axes = PAIR_AXES.get(spec["env"], lambda *_: None)(spec["env_settings"], weights.shape[1:], by_state)
    usual = PairAxes(np.ma.masked_array if by_state else later)
    return weights.mean(axis=0, dtype=float), own_axes or usual, "state" if by_state else "step"


OWN_RUNS = Study((), (_curves, _weights), (_table,))
