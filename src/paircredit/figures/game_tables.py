"""Tables of Atari and MinAtar: scores of every game and method, Meta-PWTD beside A2C, and sums over games."""

from __future__ import annotations

from collections.abc import Sequence

from paircredit.analysis.game_comparisons import (
    comparisons,
    interquartile_mean_of_games,
    median_of_games,
    normalised_scores,
    shared_games,
)
from paircredit.analysis.game_results import GameCurves, all_games
from paircredit.analysis.game_suites import Suite, name_of
from paircredit.analysis.shown import title
from paircredit.analysis.statistics import bootstrap, mean_interval
from paircredit.figures.tables import Cell, Column, Table
from paircredit.runs.read import Run

_GAME, _FRAMES = Column("game", "game"), Column("frames", "frames", ",.0f")


def scores(runs: Sequence[Run], suite: Suite) -> Table | None:
    """A row per game and method."""
    found = all_games(runs, suite)
    if not found:
        return None
    columns = (
        _GAME,
        Column("method", "method"),
        Column("seeds", "seeds"),
        _FRAMES,
        Column("score", "score", ",.2f"),
        Column("low", "from", ",.2f"),
        Column("high", "to", ",.2f"),
        Column("random", "random play", ",.2f"),
        *(Column(_column("normalised", name), f"normalised ({name})", ".3f") for name in suite.human),
    )
    rows = [_score_row(curves, suite) for methods in found.values() for curves in methods.values()]
    return Table(columns, tuple(rows))


def _column(word: str, table: str) -> str:
    return f"{word}_{table.replace(', ', '_')}"


def _score_row(curves: GameCurves, suite: Suite) -> tuple[Cell, ...]:
    own = curves.scores()
    assert own is not None  # a run has a last point, or is not among the games
    normalised = [float(suite.normalised(table, curves.game, float(own.mean()))) for table in suite.human]
    names = (name_of(curves.game), title(curves.label), len(curves.seeds), curves.trained)
    return (*names, *mean_interval(own), suite.random[curves.game], *normalised)


def relative(runs: Sequence[Run], suite: Suite) -> Table | None:
    """A row per game that A2C and Meta-PWTD have both played."""
    compared = comparisons(all_games(runs, suite), suite)
    if not compared:
        return None
    columns = (
        _GAME,
        _FRAMES,
        Column("seeds", "seeds"),
        Column("a2c", "A2C", ",.2f"),
        Column("meta_pwtd", "Meta-PWTD", ",.2f"),
        Column("difference", "difference", ",.2f"),
        Column("difference_low", "from", ",.2f"),
        Column("difference_high", "to", ",.2f"),
        Column("relative", "relative", ".3f"),
        Column("relative_low", "from", ".3f"),
        Column("relative_high", "to", ".3f"),
        Column("outcome", "Meta-PWTD is"),
        Column("by_means", "by means alone"),
    )
    rows = [
        (
            name_of(own.game),
            own.frames,
            own.seeds,
            float(own.baseline.mean()),
            float(own.ours.mean()),
            *own.difference,
            *own.relative,
            own.outcome,
            own.by_means,
        )
        for own in compared
    ]
    return Table(columns, tuple(rows))


def summary(runs: Sequence[Run], suite: Suite) -> Table | None:
    """A row per table of human scores and method: what they come to over games."""
    found = all_games(runs, suite)
    shared = shared_games(found)
    if shared is None:
        return None
    columns = (
        Column("human", "human scores"),
        Column("method", "method"),
        Column("games", "games"),
        _FRAMES,
        Column("median", "median", ".3f"),
        Column("median_low", "from", ".3f"),
        Column("median_high", "to", ".3f"),
        Column("interquartile_mean", "interquartile mean", ".3f"),
        Column("interquartile_mean_low", "from", ".3f"),
        Column("interquartile_mean_high", "to", ".3f"),
    )
    rows: list[tuple[Cell, ...]] = []
    for table in suite.human:
        for label, groups in normalised_scores(found, suite, table, shared).items():
            sums = (*bootstrap(groups, median_of_games), *bootstrap(groups, interquartile_mean_of_games))
            rows.append((table, title(label), len(groups), shared.frames, *sums))
    return Table(columns, tuple(rows))
