"""What is shown of Atari and MinAtar: Meta-PWTD beside A2C, learning curves, scores, and sums over games."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from paircredit.results import charts
from paircredit.results.charts import COLOURS, QUIET, figure, grid, looks, ticks
from paircredit.results.curves import RETURN, Curve, labels_of
from paircredit.results.exhibits import METHOD, SEEDS, Table, column, exhibit, interval, plain_table, table, title
from paircredit.results.intervals import bootstrap, mean_interval
from paircredit.runs.read import Run
from paircredit.studies.games import measures
from paircredit.studies.games.measures import BASELINE, OURS, Suite, all_games, comparisons, name_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_POINTS = 60
"""Per curve; each is the mean over a part of training."""
DIGEST_POINTS = 125
RANDOM = "random play"
_COLUMNS, _MOST_COLUMNS, _MANY_GAMES = 3, 7, 12
_FAR, _LINEAR = 150.0, 10.0
"""Per cent beyond which a difference asks for a logarithmic axis, and up to which that is linear."""
_FEW = 8
"""Games whose names have room beside each other."""
_OUTCOMES = {
    "better": (COLOURS[OURS], f"{title(OURS)} is better"),
    "worse": (COLOURS[BASELINE], f"{title(BASELINE)} is better"),
    "tie": ("#c9c9c9", "tie: the interval contains 0"),
    "open": ("#ffffff", "too few seeds to tell"),
}


def _relative(runs: Sequence[Run], suite: Suite) -> Figure | None:
    """A bar per game, sorted; below it, where there are human scores, the median over games against frames."""
    found = all_games(runs, suite)
    compared = sorted(comparisons(found, suite), key=lambda own: own.relative.estimate)
    if not compared:
        return None
    medians = measures.median_curves(found, suite) if suite.human else []
    heights = (4.4, 2.9) if medians else (4.4,)
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(min(max(0.21 * len(compared) + 1.4, 6.4), 12.0), sum(heights)), layout="constrained")
    bars, *below = drawn.subplots(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    _bars(bars, compared)
    charts.legend_above(drawn)  # before there are curves, which have a legend of their own
    for axes in below:
        _medians(axes, medians, looks(labels_of(runs, suite.role)))
    return drawn


def _bars(axes: Axes, compared: Sequence[measures.Comparison]) -> None:
    from matplotlib.patheffects import withStroke

    halo = withStroke(linewidth=2.8, foreground="#ffffff")  # intervals could not be seen on dark bars otherwise
    crowded = len(compared) > _FEW
    for outcome, (fill, words) in _OUTCOMES.items():
        places = [place for place, own in enumerate(compared) if own.outcome == outcome]
        if places:
            heights = [100 * compared[place].relative.estimate for place in places]
            name, width = f"{words} ({len(places)})", 0.78 if crowded else 0.55
            axes.bar(places, heights, width, color=fill, edgecolor=QUIET, linewidth=0.7, label=name)
    for place, own in enumerate(compared):
        ends = [100 * own.relative.low, 100 * own.relative.high]
        axes.plot([place, place], ends, color="#1a1a1a", linewidth=1.2, path_effects=[halo], solid_capstyle="butt")
    if max(abs(100 * value) for own in compared for value in own.relative) > _FAR:
        axes.set_yscale("symlog", linthresh=_LINEAR)
    axes.yaxis.set_major_formatter(lambda x, _: f"{x:+g} %".replace("-", "−") if x else "0 %")
    axes.axhline(0, color="#1a1a1a", linewidth=0.9)
    names = [name_of(own.game) for own in compared]
    axes.set_xticks(range(len(names)), names, rotation=90 if crowded else 0, fontsize=9 if crowded else 10)
    axes.set_xlim(-0.7, len(compared) - 0.3)
    axes.tick_params(axis="x", length=0)
    axes.set_title(f"Relative performance of {title(OURS)} over {title(BASELINE)}", fontsize=11)
    axes.grid(axis="y")


def _medians(axes: Axes, medians: Sequence[measures.MedianCurve], look: dict[str, charts.Look]) -> None:
    for curve in medians:
        frames, own = curve.frames / 1e6, look[curve.label]
        charts.draw_mean(axes, frames, curve.median, (curve.low, curve.high), own, title(curve.label))
    games = medians[0].games
    axes.set_xlim(left=0)
    ticks(axes.yaxis, 5)
    axes.set_title(f"Median human-normalised score of {games} game{'s' * (games > 1)}", fontsize=11)
    axes.set_xlabel("frames (millions)")
    axes.legend(loc="best", handlelength=2.4)
    axes.grid()


def _curves(runs: Sequence[Run], suite: Suite) -> Figure | None:
    """A panel per game with a curve per method: the return of a whole game against frames."""
    found = all_games(runs, suite)
    if not found:
        return None
    columns = min(_MOST_COLUMNS if len(found) > _MANY_GAMES else _COLUMNS, len(found))
    width, height = (2.15, 1.75) if len(found) > _MANY_GAMES else (3.1, 2.35)
    size = max(width * columns + 0.4, 5.6), height * math.ceil(len(found) / columns) + 0.95
    drawn, panels = grid(len(found), columns, size)
    look = looks(labels_of(runs, suite.role))
    for axes, (game, methods) in zip(panels, found.items(), strict=True):
        thinned = {label: curve.thinned(RETURN, MOST_POINTS) for label, curve in methods.items()}
        own = [charts.Line(label, frames / 1e6, values) for label, (frames, values) in thinned.items()]
        charts.lines(axes, charts.Panel(name_of(game), own, (suite.random[game], RANDOM)), look)
        axes.set_xlim(left=0)
        ticks(axes.xaxis, 4, "{x:g}")
        ticks(axes.yaxis, 4, charts.short)
    charts.finish(drawn, "frames (millions)", "episode return", last=RANDOM)
    return drawn


def _scores_table(runs: Sequence[Run], suite: Suite) -> Table | None:
    """A row per game and method."""

    def normalised(name: str) -> Callable[[Curve], float]:
        return lambda own: float(suite.normalised(name, own.place, float(_scores(own).mean())))

    return table(
        _every_curve(runs, suite),
        column("game", "game", lambda own: name_of(own.place)),
        METHOD,
        SEEDS,
        column("frames", "frames", lambda own: own.trained, ",.0f"),
        interval("score", "score", lambda own: mean_interval(_scores(own)), ",.2f", ends=""),
        column("random", "random play", lambda own: suite.random[own.place], ",.2f"),
        *(
            column(f"normalised_{name.replace(', ', '_')}", f"normalised ({name})", normalised(name), ".3f")
            for name in suite.human
        ),
    )


def _every_curve(runs: Sequence[Run], suite: Suite) -> list[Curve]:
    return [curve for methods in all_games(runs, suite).values() for curve in methods.values()]


def _scores(curve: Curve) -> np.ndarray:
    scores = curve.scores()
    assert scores is not None  # a run has a last point, or is not among the games
    return scores


def _relative_table(runs: Sequence[Run], suite: Suite) -> Table | None:
    """A row per game that A2C and Meta-PWTD have both played."""
    return table(
        comparisons(all_games(runs, suite), suite),
        column("game", "game", lambda own: name_of(own.game)),
        column("frames", "frames", lambda own: own.frames, ",.0f"),
        column("seeds", "seeds", lambda own: own.seeds),
        column("a2c", "A2C", lambda own: float(own.baseline.mean()), ",.2f"),
        column("meta_pwtd", "Meta-PWTD", lambda own: float(own.ours.mean()), ",.2f"),
        interval("difference", "difference", lambda own: own.difference, ",.2f"),
        interval("relative", "relative", lambda own: own.relative, ".3f"),
        column("outcome", "Meta-PWTD is", lambda own: own.outcome),
        column("by_means", "by means alone", lambda own: own.by_means),
    )


def _summary_table(runs: Sequence[Run], suite: Suite) -> Table | None:
    """A row per table of human scores and method: what they come to over games."""
    found = all_games(runs, suite)
    shared = measures.shared_games(found)
    if shared is None:
        return None
    middle = measures.interquartile_mean_of_games
    return table(
        [
            (human, label, own)
            for human in suite.human
            for label, own in measures.normalised_scores(found, suite, human, shared).items()
        ],
        column("human", "human scores", lambda own: own[0]),
        column("method", "method", lambda own: title(own[1])),
        column("games", "games", lambda own: len(own[2])),
        column("frames", "frames", lambda _: shared.frames, ",.0f"),
        interval("median", "median", lambda own: bootstrap(own[2], measures.median_of_games), ".3f"),
        interval("interquartile_mean", "interquartile mean", lambda own: bootstrap(own[2], middle), ".3f"),
    )


def digest(runs: Sequence[Run]) -> dict[str, Table | None]:
    """The score of every member; and curves, mean and deviation over seeds."""
    kept: dict[str, Table | None] = {}
    for suite in measures.SUITES:
        found = _every_curve(runs, suite)
        kept[f"{suite.role}-members.csv"] = plain_table(
            ("game", "method", "seed", "frames", "score"),
            (
                (curve.place, curve.label, seed, int(curve.trained), round(score, 4))
                for curve in found
                for seed, score in zip(curve.seeds.tolist(), _scores(curve).tolist(), strict=True)
            ),
        )
        kept[f"{suite.role}-curves.csv"] = plain_table(
            ("game", "method", "seeds", "frames", "mean", "deviation"),
            (row for curve in found for row in _points(curve)),
        )
    return kept


def _points(curve: Curve) -> list[list[Any]]:
    frames, values = curve.thinned(RETURN, DIGEST_POINTS)
    names = [curve.place, curve.label, len(values)]
    points = zip(frames, values.mean(axis=0), values.std(axis=0), strict=True)
    return [[*names, int(at), round(float(mean), 4), round(float(deviation), 4)] for at, mean, deviation in points]


_BANDS = (
    "Lines are means over seeds, bands are 95 % bootstrap intervals of the mean, the dashed line is random play. "
    "Curves begin when every seed has ended a game. "
)
_DRAWN = {
    "atari-relative": "Top: by how much Meta-PWTD's score is better than A2C's, as a share of the better of A2C and a "
    "person, each less random play; lines are 95 % bootstrap intervals over seeds. Where a difference is beyond 150 % "
    "the axis is linear up to 10 % and logarithmic beyond. Bottom: the median over games of the human-normalised "
    "score, 0 for random play and 1 for a person, with 95 % bootstrap intervals in which seeds are drawn and "
    "games are not. Figure 6 of the paper shows both, the curves as an inset: 30 games better, 14 worse, 5 ties, "
    "and Meta-PWTD slightly above A2C all the time. The paper does not say what the relative performance is.",
    "atari-curves": "A panel per game: the unclipped return of whole games, the last one of each actor, against "
    f"frames. {_BANDS}The appendix of the paper shows the same panels for 49 games as means of five seeds with "
    "standard errors.",
    "minatar-relative": "By how much Meta-PWTD's score is better than A2C's, as a share of what the better of the two "
    "gains over random play (at least of what random play itself is paid); lines are 95 % bootstrap intervals over "
    "seeds. The paper does not have these games: they are Atari in small, and ask the same question.",
    "minatar-curves": "A panel per game: the return of whole games, the last one of each actor, against frames, of "
    f"which a step has one. {_BANDS}The paper does not have these games.",
}
_SCORES = (
    "Scores are mean returns of whole games over the last tenth of training, means over seeds with 95 % bootstrap "
    "intervals."
)
_RELATIVE = (
    "Scores after the frames that both trained, their difference and the relative performance of the figure, with 95 % "
    "bootstrap intervals over seeds. Meta-PWTD is better or worse where the interval does not contain 0, and it is "
    "open with fewer than five seeds. By means alone it is a tie where the relative performance reads 0 %."
)
_TABULATED = {
    "atari-scores": f"{_SCORES} Normalised scores are 0 for random play and 1 for a person, by the human scores that "
    "papers on 57 games have, and by those of Mnih et al. (2015).",
    "atari-relative": f"{_RELATIVE} The paper has 30 games better, 14 worse, 5 ties.",
    "atari-summary": "The median over games of the mean over seeds, and the interquartile mean over games and seeds, "
    "after the frames that all trained, of the methods that have played all games that A2C and Meta-PWTD have. "
    "Intervals are 95 % bootstrap intervals in which seeds are drawn within games.",
    "minatar-scores": _SCORES,
    "minatar-relative": _RELATIVE,
}
FIGURES = tuple(
    figure(f"{suite.role}-{name}", f"{suite.title}: {words}", _DRAWN[f"{suite.role}-{name}"], suite=suite)(draw)
    for suite in measures.SUITES
    for name, words, draw in (("relative", "Meta-PWTD beside A2C", _relative), ("curves", "learning curves", _curves))
)
TABLES = tuple(
    exhibit(name, f"{suite.title}: {words}", _TABULATED[name], suite=suite)(make)
    for suite in measures.SUITES
    for kind, words, make in (
        ("scores", "scores", _scores_table),
        ("relative", "Meta-PWTD beside A2C, game by game", _relative_table),
        ("summary", "human-normalised scores over games", _summary_table),
    )
    if (name := f"{suite.role}-{kind}") in _TABULATED
)
