"""What the members of a run recorded in the course of training: curves, parts of them, and what they end with."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from paircredit.errors import PaircreditError
from paircredit.runs.read import Run

LAST_SHARE = 0.1
"""Scores are means over this share of training, at its end."""
ENDED = "ended_episodes"
"""Column of the metrics of runs whose rollouts are pieces: how many episodes of each actor had ended, on average."""
RETURN = "episode_return"
_PLACES = ("member", "seed", "update", "frames")
_NO_QUANTITIES = (*_PLACES, "episodes", "weights", "mask", ENDED)
"""Columns that say which row it is."""


@dataclasses.dataclass(frozen=True)
class Recorded:
    """Learning curves of one quantity: a row per member, a column per recorded point.

    A point is the mean over the updates up to the next one.

    Attributes:
        seeds: [N].
        edges: frames before each point and after the last, [P + 1].
        values: [N, P].
    """

    seeds: np.ndarray
    edges: np.ndarray
    values: np.ndarray

    @property
    def trained(self) -> float:
        """Frames of every member."""
        return float(self.edges[-1])

    def means(self, edges: np.ndarray) -> np.ndarray:
        """Means between frames [E + 1] that lie within those of the curve, [N, E]."""
        sums = np.pad(np.cumsum(self.values * np.diff(self.edges), axis=1), ((0, 0), (1, 0)))
        at = np.stack([np.interp(edges, self.edges, own) for own in sums])
        return np.asarray(np.diff(at, axis=1) / np.diff(edges))

    def thinned(self, points: int) -> tuple[np.ndarray, np.ndarray]:
        """Frames [P] and values [N, P], each the mean over a part of training, so that few are left."""
        edges = np.linspace(self.edges[0], self.edges[-1], min(points, len(self.edges) - 1) + 1)
        return (edges[:-1] + edges[1:]) / 2, self.means(edges)

    def scores(self, frames: float | None = None) -> np.ndarray | None:
        """The mean over the last tenth of the first so many frames (of all of them), of every member, [N].

        None where nothing was known yet by then.
        """
        end = self.trained if frames is None else frames
        begin = max((1 - LAST_SHARE) * end, float(self.edges[0]))
        return self.means(np.array([begin, end]))[:, 0] if begin < end <= self.trained else None


def recorded(run: Run, quantities: Sequence[str] | None = None) -> dict[str, Recorded] | None:
    """The curves of a training by quantity, or None where nothing is known yet. Of an unfinished one, as far as it got.

    Where rollouts are pieces, points before every member has ended an episode are left out: nobody knows a return then.

    Args:
        run: what to read.
        quantities: columns of its metrics; left out, all but those that say which row it is.

    Raises:
        PaircreditError: its rows have not these columns, or its members not the same rows.
    """
    members: dict[int, list[dict[str, Any]]] = {}
    for row in run.metrics():
        if quantities is None and isinstance(row, dict):
            quantities = [name for name in row if name not in _NO_QUANTITIES and isinstance(row[name], float)]
        if not isinstance(row, dict) or not row.keys() >= {*_PLACES, *(quantities or ())}:
            raise PaircreditError(
                f"The metrics of {run.path} hold a line that is no row of a training: {str(row)[:80]}."
            )
        members.setdefault(row["member"], []).append(row)
    points = min((len(rows) for rows in members.values()), default=0)
    if run.finished and any(len(rows) > points for rows in members.values()):
        raise PaircreditError(f"The members of {run.path} have not all recorded the same points.")
    if points < 2 or quantities is None:
        return None

    rows = [members[own][:points] for own in sorted(members)]

    def column(name: str) -> np.ndarray:
        return np.array([[row[name] for row in own] for own in rows])

    frames = column("frames")[0].astype(float)
    end = run.spec["updates"] * frames[-1] / rows[0][-1]["update"]
    edges = np.append(frames, end) if run.finished else frames
    unknown = 0
    if ENDED in rows[0][0]:
        # A point is a mean over updates: all of these had a return to tell if one had ended before the point began.
        unknown = int(np.sum(np.any(column(ENDED)[:, :-1] == 0, axis=0))) + 1
    if unknown >= len(edges) - 1:
        return None
    seeds = column("seed")[:, 0]
    return {
        name: Recorded(seeds, edges[unknown:], column(name).astype(float)[:, unknown : len(edges) - 1])
        for name in quantities
    }


def last_returns(run: Run) -> list[tuple[dict[str, Any], float]]:
    """The mean return over the last tenth of every member, with a row that says which it is.

    Members are left out in whose rows of that time no episode had ended.
    """
    rows, curves = run.metrics(), recorded(run, [RETURN])
    last = {row["member"]: row for row in rows}
    scores = curves[RETURN].scores() if curves else None
    if scores is not None:
        return [(last[member], float(score)) for member, score in zip(sorted(last), scores, strict=True)]
    # Too short for a curve, or not every member has ended an episode.
    begin = min((1 - LAST_SHARE) * run.spec["updates"], rows[-1]["update"])
    late = [row for row in rows if row["update"] >= begin and row.get(ENDED, 1) > 0]
    own = {member: [row[RETURN] for row in late if row["member"] == member] for member in sorted(last)}
    return [(last[member], float(np.mean(returns))) for member, returns in own.items() if returns]
