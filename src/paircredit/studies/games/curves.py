"""Atari and MinAtar as sets of games that are judged alike, the curves of runs on them, and methods compared."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from paircredit.envs.atari.games import GAMES
from paircredit.results.curves import RETURN, Curve, curves
from paircredit.results.exhibits import LEAST_SEEDS
from paircredit.results.intervals import Interval, bootstrap, grouped_median_band, interquartile_mean
from paircredit.results.names import in_order, runs_of
from paircredit.runs.read import Run

MINATAR_RANDOM_PLAY = {
    "asterix": 0.5,
    "breakout": 0.385,
    "freeway": 0.39,
    "seaquest": 0.104,
    "space_invaders": 4.0,
}
"""What random play is paid in a game, measured with the default settings of the environments."""


@dataclasses.dataclass(frozen=True)
class Suite:
    """A set of games.

    Attributes:
        role: of runs on them.
        title: for readers.
        random: what random play scores in every game; their order is that in which they are shown.
        human: what a person scores, in each of the tables that there are, the one that counts first; or none.
    """

    role: str
    title: str
    random: Mapping[str, float]
    human: Mapping[str, Mapping[str, float]] = dataclasses.field(default_factory=dict)

    def relative(self, game: str, ours: np.ndarray | float, theirs: np.ndarray | float) -> np.ndarray:
        """By how much the score `ours` is better than `theirs`, as a share of what there is in the game.

        With human scores this is the difference over max(theirs, human) − random (Wang et al. 2016); without, over
        max(|ours − random|, |theirs − random|, |random|), so that it changes sign if the two are exchanged, is at most
        1 in size where both are better than random play, and small where neither is.
        """
        random = self.random[game]
        if self.human:
            (human, *_) = self.human.values()
            return np.asarray((ours - theirs) / (np.maximum(theirs, human[game]) - random))
        gains = np.maximum(np.abs(ours - random), np.abs(theirs - random))
        return np.asarray((ours - theirs) / np.maximum(gains, abs(random)))

    def normalised(self, table: str, game: str, scores: np.ndarray | float) -> np.ndarray:
        """Scores on a scale on which random play is 0 and a person is 1."""
        random = self.random[game]
        return np.asarray((scores - random) / (self.human[table][game] - random))


HUMAN, HUMAN_2015 = "human", "human, 2015"
"""Tables of human scores."""
ATARI = Suite(
    "atari",
    "Atari",
    {game: reference.random for game, reference in GAMES.items()},
    {
        HUMAN: {game: reference.human for game, reference in GAMES.items()},
        HUMAN_2015: {game: reference.human_2015 for game, reference in GAMES.items()},
    },
)
MINATAR = Suite("minatar", "MinAtar", MINATAR_RANDOM_PLAY)
SUITES = (ATARI, MINATAR)


def name_of(game: str) -> str:
    """A game's name for readers."""
    return game.replace("_", " ").title()


Games = Mapping[str, Mapping[str, Curve]]


def all_games(runs: Sequence[Run], suite: Suite) -> dict[str, dict[str, Curve]]:
    """The curves of all runs on the games of a suite, by game and method in the order in which they are shown.

    They are of mean returns of the last whole game that each actor has ended. Runs in which no game ended are left out.
    """

    def who(run: Run, _: tuple[object, ...]) -> tuple[str, tuple[()]]:
        return run.spec["tags"]["game"], ()

    found = curves(runs, suite.role, who, where=lambda game: f"on {suite.title}'s {name_of(game)}")
    by_place = {(curve.place, curve.label): curve for curve in found}
    labels = method_labels(runs, suite)
    result = {
        game: {label: by_place[game, label] for label in labels if (game, label) in by_place} for game in suite.random
    }
    return {game: methods for game, methods in result.items() if methods}


def method_labels(runs: Sequence[Run], suite: Suite) -> list[str]:
    """The methods of all runs on a suite, in the order in which they are shown."""
    return in_order({run.spec["tags"]["label"] for run in runs_of(runs, suite.role)})


OURS, BASELINE = "meta-pwtd", "a2c"
SAME = 0.005
"""By means alone two methods tie where the relative performance is smaller than this: a bar that reads 0 %."""
CURVE_POINTS = 60

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


class Shared(NamedTuple):
    """What methods are summed up over.

    Attributes:
        games: that A2C and Meta-PWTD have both played, or the one of the two that is there.
        labels: of the methods that have played all of them at least as long.
        frames: that both trained in all of these games.
    """

    games: list[str]
    labels: list[str]
    frames: float


def shared_games(found: Games, least_seeds: int = 1) -> Shared | None:
    """The games over which methods can be compared, and these methods; None where there are no such games."""
    enough = {
        game: {label: own for label, own in methods.items() if len(own.seeds) >= least_seeds}
        for game, methods in found.items()
    }
    there = [label for label in (BASELINE, OURS) if any(label in methods for methods in enough.values())]
    games = [game for game, methods in enough.items() if there and methods.keys() >= set(there)]
    if not games:
        return None
    frames = min(enough[game][label].trained for game in games for label in there)
    labels = dict.fromkeys(label for game in games for label in enough[game])

    def has_all(label: str) -> bool:
        return all(label in enough[game] and enough[game][label].scores(frames) is not None for game in games)

    return Shared(games, [label for label in labels if has_all(label)], frames)


def normalised_scores(found: Games, suite: Suite, table: str, shared: Shared) -> dict[str, list[np.ndarray]]:
    """The human-normalised scores of every method, an array over seeds for each game."""
    groups: dict[str, list[np.ndarray]] = {label: [] for label in shared.labels}
    for label, game in itertools.product(shared.labels, shared.games):
        scores = found[game][label].scores(shared.frames)
        if scores is not None:
            groups[label].append(suite.normalised(table, game, scores))
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
        games: how many.
        frames: in the middle of each part of training, [P].
        median: [P].
        low: of its 95 % interval, [P].
        high: likewise.
    """

    label: str
    games: int
    frames: np.ndarray
    median: np.ndarray
    low: np.ndarray
    high: np.ndarray


def median_curves(found: Games, suite: Suite) -> list[MedianCurve]:
    """A curve for each method over the shared games, from when all of them have ended one."""
    shared = shared_games(found)
    if shared is None or not shared.labels:
        return []
    curves = {label: [found[game][label] for game in shared.games] for label in shared.labels}
    every = [own for group in curves.values() for own in group]
    begin, recorded = max(own.edges["frames"][0] for own in every), min(own.values[RETURN].shape[1] for own in every)
    edges = np.linspace(begin, shared.frames, min(CURVE_POINTS, recorded) + 1)
    (table, *_) = suite.human
    result = []
    for label, group in curves.items():
        values = [suite.normalised(table, own.place, own.means(RETURN, edges)) for own in group]
        median = np.median([own.mean(axis=0) for own in values], axis=0)
        low, high = grouped_median_band(values)
        result.append(MedianCurve(label, len(group), (edges[:-1] + edges[1:]) / 2, median, low, high))
    return result
