"""Methods on many games, compared: relative performance game by game, human-normalised scores over all of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from paircredit.analysis.game_results import GameCurves
from paircredit.analysis.game_suites import Suite
from paircredit.analysis.statistics import Interval, bootstrap, grouped_median_band, interquartile_mean
from paircredit.analysis.verdicts import LEAST_SEEDS

OURS, BASELINE = "meta-pwtd", "a2c"
SAME = 0.005
"""By means alone two methods tie where the relative performance is smaller than this: a bar that reads 0 %."""
CURVE_POINTS = 60

Games = Mapping[str, Mapping[str, GameCurves]]
Outcome = Literal["better", "worse", "tie", "open"]
"""Open where there are too few seeds to tell."""


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Meta-PWTD beside A2C in one game, after the frames that both trained.

    Attributes:
        game: its name.
        frames: of every member.
        ours: scores of Meta-PWTD, [N].
        baseline: scores of A2C, [N'].
        difference: of the means.
        relative: the same as a share, see `Suite.relative`.
    """

    game: str
    frames: float
    ours: np.ndarray
    baseline: np.ndarray
    difference: Interval
    relative: Interval

    @property
    def seeds(self) -> int:
        """Of the method that has fewer."""
        return min(len(self.ours), len(self.baseline))

    @property
    def outcome(self) -> Outcome:
        """By the 95 % interval of the relative performance."""
        if self.seeds < LEAST_SEEDS:
            return "open"
        return "better" if self.relative.low > 0 else "worse" if self.relative.high < 0 else "tie"

    @property
    def by_means(self) -> Outcome:
        """By the mean scores alone."""
        if abs(self.relative.estimate) < SAME:
            return "tie"
        return "better" if self.relative.estimate > 0 else "worse"


def comparisons(found: Games, suite: Suite) -> list[Comparison]:
    """Meta-PWTD beside A2C in every game that both have played."""
    result = []
    for game, methods in found.items():
        if OURS not in methods or BASELINE not in methods:
            continue
        frames = min(methods[label].trained for label in (OURS, BASELINE))
        ours, baseline = (methods[label].scores(frames) for label in (OURS, BASELINE))
        if ours is None or baseline is None:
            continue
        result.append(
            Comparison(
                game,
                frames,
                ours,
                baseline,
                bootstrap([ours, baseline], lambda x, y: x.mean(axis=-1) - y.mean(axis=-1)),
                bootstrap(
                    [ours, baseline],
                    lambda x, y, game=game: suite.relative(game, x.mean(axis=-1), y.mean(axis=-1)),
                ),
            )
        )
    return result


def counts(outcomes: Sequence[Outcome]) -> tuple[int, int, int]:
    """How often better, worse and a tie."""
    better, worse, tie = (sum(outcome == wanted for outcome in outcomes) for wanted in ("better", "worse", "tie"))
    return better, worse, tie


def shared_games(found: Games, least_seeds: int = 1) -> tuple[list[str], list[str]]:
    """Games over which methods can be summed up alike, and the methods that have played all of these.

    The games are those that both A2C and Meta-PWTD have played, or the one of the two that is there.
    """
    there = [
        label for label in (BASELINE, OURS) if any(_has(methods, label, least_seeds) for methods in found.values())
    ]
    games = [game for game, methods in found.items() if there and all(_has(methods, own, least_seeds) for own in there)]
    labels = dict.fromkeys(label for methods in found.values() for label in methods)
    return games, [own for own in labels if games and all(_has(found[game], own, least_seeds) for game in games)]


def _has(methods: Mapping[str, GameCurves], label: str, least_seeds: int) -> bool:
    return label in methods and len(methods[label].seeds) >= least_seeds


def common_frames(found: Games, games: Sequence[str], labels: Sequence[str]) -> float:
    """The frames that all of them trained."""
    return min(found[game][label].trained for game in games for label in labels)


def normalised_scores(
    found: Games, suite: Suite, table: str, games: Sequence[str], label: str, frames: float
) -> list[np.ndarray] | None:
    """The human-normalised scores of a method, an array over seeds for each game; None where one has none yet."""
    groups = []
    for game in games:
        scores = found[game][label].scores(frames)
        if scores is None:
            return None
        groups.append(suite.normalised(table, game, scores))
    return groups


def median_of_games(*groups: np.ndarray) -> np.ndarray:
    """The median over games of the mean over seeds."""
    return np.asarray(np.median(np.stack([group.mean(axis=-1) for group in groups]), axis=0))


def interquartile_mean_of_games(*groups: np.ndarray) -> np.ndarray:
    """The interquartile mean over all games and seeds."""
    return interquartile_mean(np.concatenate(groups, axis=-1))


def median_difference_of_games(first: Sequence[np.ndarray], second: Sequence[np.ndarray]) -> Interval:
    """The first method's median over games minus the second's; seeds are drawn within games."""

    def difference(*drawn: np.ndarray) -> np.ndarray:
        return np.asarray(median_of_games(*drawn[: len(first)]) - median_of_games(*drawn[len(first) :]))

    return bootstrap([*first, *second], difference)


@dataclasses.dataclass(frozen=True)
class MedianCurve:
    """The median human-normalised score over games in the course of training.

    Attributes:
        label: of the method.
        frames: in the middle of each part of training, [P].
        median: [P].
        low: of its 95 % interval, [P].
        high: likewise.
    """

    label: str
    frames: np.ndarray
    median: np.ndarray
    low: np.ndarray
    high: np.ndarray


def median_curves(found: Games, suite: Suite) -> tuple[list[str], list[MedianCurve]]:
    """The games, and a curve for each method that has played all of them, from when all of them have ended one."""
    games, labels = shared_games(found)
    if not labels:
        return [], []
    end = common_frames(found, games, labels)
    begin = max(float(found[game][label].edges[0]) for game in games for label in labels)
    if begin >= end:
        return [], []
    edges = np.linspace(begin, end, CURVE_POINTS + 1)
    (table, *_) = suite.human
    curves = []
    for label in labels:
        groups = [suite.normalised(table, game, found[game][label].means(edges)) for game in games]
        median = np.median([group.mean(axis=0) for group in groups], axis=0)
        low, high = grouped_median_band(groups)
        curves.append(MedianCurve(label, (edges[:-1] + edges[1:]) / 2, median, low, high))
    return games, curves
