"""What figures and claims want to know about runs on Atari and MinAtar: curves and scores of every game and method."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from paircredit.analysis.game_suites import Suite, name_of
from paircredit.analysis.shown import in_order, runs_of, title
from paircredit.errors import PaircreditError
from paircredit.runs.read import Run, read_run

LAST_SHARE = 0.1
"""Scores are means over this share of training, at its end."""
_NAMES = ("seed", "update", "frames", "episode_return", "ended_episodes")
"""Columns of the metrics that curves are made of, beside the member's number."""


@dataclasses.dataclass(frozen=True)
class GameCurves:
    """Learning curves of one method in one game: a row per seed, a column per recorded point.

    A point is the mean over the updates up to the next one, of the mean return of the last game that each actor has
    ended. Points before every member had ended a game are left out: nobody knows a return then.

    Attributes:
        label: of the method.
        game: its name.
        seeds: [N].
        edges: frames before each point and after the last, [P + 1].
        values: returns of whole games, [N, P].
    """

    label: str
    game: str
    seeds: np.ndarray
    edges: np.ndarray
    values: np.ndarray

    @property
    def trained(self) -> float:
        """Frames of every member."""
        return float(self.edges[-1])

    def means(self, edges: np.ndarray) -> np.ndarray:
        """Mean returns between frames [E + 1] that lie within those of the curve, [N, E]."""
        sums = np.pad(np.cumsum(self.values * np.diff(self.edges), axis=1), ((0, 0), (1, 0)))
        at = np.stack([np.interp(edges, self.edges, own) for own in sums])
        return np.asarray(np.diff(at, axis=1) / np.diff(edges))

    def thinned(self, points: int) -> tuple[np.ndarray, np.ndarray]:
        """Frames [P] and returns [N, P], each the mean over a part of training, so that few are left."""
        edges = np.linspace(self.edges[0], self.edges[-1], min(points, len(self.edges) - 1) + 1)
        return (edges[:-1] + edges[1:]) / 2, self.means(edges)

    def scores(self, frames: float | None = None) -> np.ndarray | None:
        """The mean return over the last tenth of the first so many frames (of all of them), of every member, [N].

        None where no game had ended by then.
        """
        end = self.trained if frames is None else frames
        begin = max((1 - LAST_SHARE) * end, float(self.edges[0]))
        return self.means(np.array([begin, end]))[:, 0] if begin < end <= self.trained else None


def all_games(runs: Sequence[Run], suite: Suite) -> dict[str, dict[str, GameCurves]]:
    """The curves of all runs on the games of a suite, by game and method in the order in which they are shown.

    Runs in which no game ended are left out.

    Raises:
        PaircreditError: two runs are of the same method and game.
    """
    found: dict[tuple[str, str], tuple[Run, GameCurves]] = {}
    for run in runs_of(runs, suite.role):
        curves = _read(run.path, run.manifest["sha256"]) if run.finished else _curves(run)
        if curves is None:
            continue
        place = curves.game, curves.label
        if place in found:
            raise PaircreditError(
                f"Both {found[place][0].path} and {run.path} hold {title(curves.label)} on {suite.title}'s "
                f"{name_of(curves.game)}; name a folder with one."
            )
        found[place] = run, curves
    labels = method_labels(runs, suite)
    result = {
        game: {label: found[game, label][1] for label in labels if (game, label) in found} for game in suite.random
    }
    return {game: methods for game, methods in result.items() if methods}


def method_labels(runs: Sequence[Run], suite: Suite) -> list[str]:
    """The methods of all runs on a suite, in the order in which they are shown."""
    return in_order({run.spec["tags"]["label"] for run in runs_of(runs, suite.role)})


@functools.lru_cache(maxsize=256)
def _read(path: Path, manifest_sum: str) -> GameCurves | None:
    """The curves of a run, or None where no game ended; kept, because a report asks several times."""
    del manifest_sum  # says that it is still the same run
    return _curves(read_run(path))


def _curves(run: Run) -> GameCurves | None:
    """The curves of a run, or None where no game ended. Of an unfinished one, up to where its last point begins."""
    members: dict[int, list[dict[str, Any]]] = {}
    for row in run.metrics():
        if not isinstance(row, dict) or not row.keys() >= {"member", *_NAMES}:
            raise PaircreditError(f"The metrics of {run.path} hold a line that is no row of a game: {str(row)[:80]}.")
        members.setdefault(row["member"], []).append(row)
    points = min((len(rows) for rows in members.values()), default=0)
    if run.finished and (points < 2 or any(len(rows) > points for rows in members.values())):
        raise PaircreditError(f"The members of {run.path} have not all recorded the same points, or only one.")
    if points < 2:
        return None
    rows = {
        name: np.array([[row[name] for row in members[own][:points]] for own in sorted(members)]) for name in _NAMES
    }
    frames = rows["frames"][0].astype(float)
    end = run.spec["updates"] * frames[-1] / rows["update"][0, -1]
    edges = np.append(frames, end) if run.finished else frames
    # A point is a mean over updates: all of these had a return to tell if a game had ended before the point began.
    unknown = int(np.sum(np.any(rows["ended_episodes"][:, :-1] == 0, axis=0))) + 1
    if unknown >= len(edges) - 1:
        return None
    tags = run.spec["tags"]
    return GameCurves(
        label=tags["label"],
        game=tags["game"],
        seeds=rows["seed"][:, 0],
        edges=edges[unknown:],
        values=rows["episode_return"].astype(float)[:, unknown : len(edges) - 1],
    )
