"""The one reader of what trainings recorded, finished or not: curves of members that belong together."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from paircredit.errors import PaircreditError
from paircredit.results.exhibits import in_order, title
from paircredit.runs.read import Run

LAST_SHARE = 0.1
"""Scores are means over this share of training, at its end."""
RETURN = "episode_return"
ENDED = "ended_episodes"
"""Column of runs whose rollouts are segments of episodes: how many episodes of each actor had ended, on average."""
_PLACES = ("member", "seed", "update", "frames")
_NO_QUANTITIES = (*_PLACES, "episodes", "weights", "mask", ENDED)
"""Columns that say which row it is."""


def runs_of(runs: Sequence[Run], *roles: str) -> list[Run]:
    """The runs of some roles."""
    return [run for run in runs if run.kind == "training" and run.spec.get("tags", {}).get("role") in roles]


def labels_of(runs: Sequence[Run], *roles: str) -> list[str]:
    """The methods of all runs of some roles, in the order in which they are shown."""
    return in_order({run.spec["tags"]["label"] for run in runs_of(runs, *roles)})


@dataclasses.dataclass(frozen=True)
class Curve:
    """What N members of one method recorded in one place (a depth, a setting, a domain, a game), at P points.

    A point is the mean over the updates up to the next one.

    Attributes:
        label: the method, and what is changed about it.
        variant: what else tells the members of a place from others.
        edges: before each point and after the last, [P + 1]: `frames`, and `episodes` where their number is known.
        values: every quantity that was recorded, [N, P].
        marks: what the rows of a member have in common, [N]: labels of variants, the table of weights it was given.
        run: that they are of, or the first of several.
    """

    label: str
    place: Any
    variant: tuple[Any, ...]
    seeds: np.ndarray
    edges: Mapping[str, np.ndarray]
    values: Mapping[str, np.ndarray]
    marks: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)
    run: Run | None = None

    @property
    def trained(self) -> float:
        """The frames that every member was trained for."""
        return float(self.edges["frames"][-1])

    def means(self, quantity: str, edges: np.ndarray) -> np.ndarray:
        """Means between frames [E + 1] that lie within those of the curve, [N, E]."""
        own, values = self.edges["frames"], self.values[quantity]
        sums = np.pad(np.cumsum(values * np.diff(own), axis=1), ((0, 0), (1, 0)))
        at = np.stack([np.interp(edges, own, member) for member in sums])
        return np.asarray(np.diff(at, axis=1) / np.diff(edges))

    def thinned(self, quantity: str, points: int) -> tuple[np.ndarray, np.ndarray]:
        """Frames [P] and values [N, P] of fewer points, each the mean over an equal part of training."""
        own = self.edges["frames"]
        edges = np.linspace(own[0], own[-1], min(points, len(own) - 1) + 1)
        return (edges[:-1] + edges[1:]) / 2, self.means(quantity, edges)

    def scores(self, frames: float | None = None, quantity: str = RETURN) -> np.ndarray | None:
        """Means over the last tenth of the first `frames` (or of all), [N]; None where nothing was known by then."""
        end = self.trained if frames is None else frames
        begin = max((1 - LAST_SHARE) * end, float(self.edges["frames"][0]))
        return self.means(quantity, np.array([begin, end]))[:, 0] if begin < end <= self.trained else None


class Recorded(NamedTuple):
    """All that the members of one run recorded: every column of the metrics, [members, P], and edges as in `Curve`."""

    edges: dict[str, np.ndarray]
    columns: dict[str, np.ndarray]


def recorded(run: Run) -> Recorded | None:
    """What a training recorded, or None where that is too little for a curve; of an unfinished one, as far as it got.

    Where rollouts are segments of episodes, points before every member has ended one are left out: nobody knows a
    return then. Of an unfinished run the last point is left out, of which nobody knows where it ends.
    """
    columns = run.columns
    if missing := [name for name in _PLACES if columns and name not in columns]:
        raise PaircreditError(
            f"The metrics of {run.path} hold a line that is no row of a training: it has no {missing[0]!r}."
        )
    if not columns:
        return None
    rows = [np.flatnonzero(columns["member"] == member) for member in np.unique(columns["member"])]
    points = min(len(own) for own in rows)
    if run.finished and any(len(own) > points for own in rows):
        raise PaircreditError(f"The members of {run.path} have not all recorded the same points.")
    if points < 2:
        return None
    order = np.stack([own[:points] for own in rows])
    by_member = {name: column[order] for name, column in columns.items()}
    known = slice(_unknown(by_member), None if run.finished else -1)
    if len(range(points)[known]) < 1:
        return None
    edges: dict[str, np.ndarray] = {}
    for axis in ("frames", "episodes"):
        if axis in by_member:
            begins = by_member[axis][0].astype(float)
            end = run.spec["updates"] * begins[-1] / by_member["update"][0, -1]
            edges[axis] = np.append(begins, end)[known.start :] if run.finished else begins[known.start :]
    return Recorded(edges, {name: column[:, known] for name, column in by_member.items()})


def _unknown(by_member: Mapping[str, np.ndarray]) -> int:
    """The number of points at the beginning in which not every member knew a return."""
    if ENDED not in by_member:
        return 0
    # A point is a mean over updates: all of these had a return if an episode had ended before the point began.
    return int(np.sum(np.any(by_member[ENDED][:, :-1] == 0, axis=0))) + 1


def whole_curve(run: Run) -> Curve | None:
    """All members of a run as one curve, or None where nothing is known yet."""
    found = recorded(run)
    return None if found is None else _curve(run, found, slice(None), run.spec.get("tags", {}).get("label"), None, ())


def curves(
    runs: Sequence[Run],
    role: str,
    who: Callable[[Run, tuple[Any, ...]], tuple[Hashable, tuple[Any, ...]]],
    split: Sequence[str] = (),
    where: Callable[[Any], str] = str,
) -> list[Curve]:
    """The curves of all runs of a role; those of runs in which nothing is known yet are left out.

    The members of a run are split by the values of some columns; these and the run say `who` they are: place and
    variant. Runs may share a place if their seeds differ and they recorded the same points; `where` it is in words.
    """
    found: dict[tuple[Any, ...], Curve] = {}
    for run in runs_of(runs, role):
        rows = recorded(run)
        if rows is None:
            continue
        kinds = list(zip(*(rows.columns[name][:, 0].tolist() for name in split), strict=True)) if split else None
        for kind in dict.fromkeys(kinds or [()]):
            members = slice(None) if kinds is None else np.array([other == kind for other in kinds])
            place, variant = who(run, kind)
            curve = _curve(run, rows, members, run.spec["tags"]["label"], place, variant)
            key = place, curve.label, variant
            found[key] = _joined(found[key], curve, f"{title(curve.label)} {where(place)}") if key in found else curve
    return list(found.values())


def _curve(run: Run, rows: Recorded, members: Any, label: Any, place: Any, variant: tuple[Any, ...]) -> Curve:
    columns = {name: column[members] for name, column in rows.columns.items()}
    quantities = [name for name, own in columns.items() if own.dtype.kind == "f" and name not in _NO_QUANTITIES]
    marks = {name: own[:, 0] for name, own in columns.items() if name not in (*quantities, *_PLACES, "episodes", ENDED)}
    values = {name: columns[name] for name in quantities}
    return Curve(str(label), place, variant, columns["seed"][:, 0], rows.edges, values, marks, run)


def _joined(first: Curve, second: Curve, name: str) -> Curve:
    assert first.run is not None and second.run is not None
    paths = first.run.path, second.run.path
    if np.intersect1d(first.seeds, second.seeds).size:
        raise PaircreditError(
            f"Both {paths[0]} and {paths[1]} hold the same part of the experiment ({name}); name a folder with one."
        )
    if not np.array_equal(first.edges["frames"], second.edges["frames"]):
        raise PaircreditError(
            f"{paths[0]} and {paths[1]} have seeds of {name}, but did not record the same points; run one of them "
            "again."
        )

    def both(one: Mapping[str, np.ndarray], other: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {key: np.concatenate([one[key], other[key]]) for key in one.keys() & other.keys()}

    return dataclasses.replace(
        first,
        seeds=np.concatenate([first.seeds, second.seeds]),
        values=both(first.values, second.values),
        marks=both(first.marks, second.marks),
    )


def by_place(found: Iterable[Curve]) -> dict[Any, dict[str, Curve]]:
    """Curves by their place and then by their method."""
    result: dict[Any, dict[str, Curve]] = {}
    for curve in found:
        result.setdefault(curve.place, {})[curve.label] = curve
    return result


def spread(count: int, most: int) -> np.ndarray:
    """At most this many of the first `count` places, equally far from each other."""
    return np.unique(np.linspace(0, count - 1, most).round().astype(int))


def first_time(times: np.ndarray, values: np.ndarray, threshold: float) -> np.ndarray:
    """For every row of values [N, P] the first of the times [P] at which it is at the threshold; inf if never, [N]."""
    reached = values >= threshold
    if not reached.shape[1]:
        return np.full(len(reached), np.inf)
    return np.where(reached.any(axis=1), times[reached.argmax(axis=1)].astype(float), np.inf)


def last_returns(run: Run) -> list[tuple[dict[str, Any], float]]:
    """A row that tells who it is, and the last tenth's mean return, of every member that had ended an episode then."""
    rows, curve = run.metrics(), whole_curve(run)
    last = {row["member"]: row for row in rows}
    scores = curve.scores() if curve else None
    if scores is not None:
        return [(last[member], float(score)) for member, score in zip(sorted(last), scores, strict=True)]
    # Too short for a curve, or not every member has ended an episode.
    begin = min((1 - LAST_SHARE) * run.spec["updates"], rows[-1]["update"])
    late = [row for row in rows if row["update"] >= begin and row.get(ENDED, 1) > 0]
    own = {member: [row[RETURN] for row in late if row["member"] == member] for member in sorted(last)}
    return [(last[member], float(np.mean(returns))) for member, returns in own.items() if returns]


def rows(runs: Sequence[Run], kind: str) -> list[dict[str, Any]]:
    """The rows of all runs of a kind that is no training."""
    found = [run.columns for run in runs if run.kind == kind]
    return [
        dict(zip(columns, row, strict=True))
        for columns in found
        for row in zip(*(column.tolist() for column in columns.values()), strict=True)
    ]
