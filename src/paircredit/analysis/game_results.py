"""What figures and claims want to know about runs on Atari and MinAtar: curves and scores of every game and method."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from pathlib import Path

from paircredit.analysis.game_suites import Suite, name_of
from paircredit.analysis.recorded import ENDED, RETURN, Recorded, recorded
from paircredit.analysis.shown import in_order, runs_of, title
from paircredit.errors import PaircreditError
from paircredit.runs.read import Run, read_run


@dataclasses.dataclass(frozen=True)
class GameCurves(Recorded):
    """Learning curves of one method in one game: mean returns of the last whole game that each actor has ended.

    Attributes:
        label: of the method.
        game: its name.
    """

    label: str
    game: str


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
    found = recorded(run, (RETURN, ENDED))
    if found is None:
        return None
    returns, tags = found[RETURN], run.spec["tags"]
    return GameCurves(returns.seeds, returns.edges, returns.values, label=tags["label"], game=tags["game"])
