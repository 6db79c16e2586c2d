"""Atari and MinAtar as sets of games: curves, methods compared, and the claims that are judged by these."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from paircredit.envs.atari import GAMES
from paircredit.results.curves import RETURN, Curve, by_place, curves, labels_of
from paircredit.results.exhibits import LEAST_SEEDS, Status, claim, title
from paircredit.results.intervals import (
    Interval,
    bootstrap,
    difference_of,
    grouped_median_band,
    interquartile_mean,
    mean_difference,
    mean_interval,
)
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
    """A set of games: the role of runs on them, and what random play scores, in the order in which they are shown.

    What a person scores is in each of the tables that there are, the one that counts first; or there is none.
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

    def where(game: str) -> str:
        return f"on {suite.title}'s {name_of(game)}"

    found = curves(runs, suite.role, lambda run, _: (run.spec["tags"]["game"], ()), where=where)
    games, labels = list(suite.random), labels_of(runs, suite.role)
    known = [curve for curve in found if curve.place in suite.random]
    return by_place(sorted(known, key=lambda curve: (games.index(curve.place), labels.index(curve.label))))


OURS, BASELINE = "meta-pwtd", "a2c"
SAME = 0.005
"""By means alone two methods tie where the relative performance is smaller than this: a bar that reads 0 %."""
CURVE_POINTS = 60

Outcome = Literal["better", "worse", "tie", "open"]
"""Open where there are too few seeds to tell."""


class Comparison(NamedTuple):
    """Scores of Meta-PWTD [N] and A2C [N'] in a game after the frames that both trained; see `Suite.relative`."""

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
        if not {OURS, BASELINE} <= methods.keys():
            continue
        frames = min(methods[label].trained for label in (OURS, BASELINE))
        ours, baseline = (methods[label].scores(frames) for label in (OURS, BASELINE))
        if ours is None or baseline is None:
            continue

        def relative(x: np.ndarray, y: np.ndarray, game: str = game) -> np.ndarray:
            return suite.relative(game, x.mean(axis=-1), y.mean(axis=-1))

        difference, share = mean_difference(ours, baseline), bootstrap([ours, baseline], relative)
        result.append(Comparison(game, frames, ours, baseline, difference, share))
    return result


def counts(outcomes: list[Outcome]) -> tuple[int, int, int]:
    """How often better, worse and a tie."""
    return outcomes.count("better"), outcomes.count("worse"), outcomes.count("tie")


class Shared(NamedTuple):
    """The games that A2C and Meta-PWTD have both played (or the one that is there), and the frames that both trained.

    Labels are of the methods that have played all of them at least as long.
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

    def has_all(label: str) -> bool:
        return all(label in enough[game] and enough[game][label].scores(frames) is not None for game in games)

    labels = dict.fromkeys(label for game in games for label in enough[game])
    return Shared(games, [label for label in labels if has_all(label)], frames)


def normalised_scores(found: Games, suite: Suite, table: str, shared: Shared) -> dict[str, list[np.ndarray]]:
    """The human-normalised scores of every method, an array over seeds for each game."""
    scores = {
        label: {game: found[game][label].scores(shared.frames) for game in shared.games} for label in shared.labels
    }
    return {
        label: [suite.normalised(table, game, score) for game, score in own.items() if score is not None]
        for label, own in scores.items()
    }


def median_of_games(*groups: np.ndarray) -> np.ndarray:
    """The median over games of the mean over seeds."""
    return np.asarray(np.median(np.stack([group.mean(axis=-1) for group in groups]), axis=0))


def interquartile_mean_of_games(*groups: np.ndarray) -> np.ndarray:
    """The interquartile mean over all games and seeds."""
    return interquartile_mean(np.concatenate(groups, axis=-1))


class MedianCurve(NamedTuple):
    """The median human-normalised score of a method: the number of games, frames and, at these, numbers [P]."""

    label: str
    games: int
    frames: np.ndarray
    median: np.ndarray
    low: np.ndarray
    high: np.ndarray


def median_curves(found: Games, suite: Suite) -> list[MedianCurve]:
    """A curve with its 95 % band for each method over the shared games, from when all of them have ended one."""
    shared = shared_games(found)
    if shared is None or not shared.labels:
        return []
    curves = {label: [found[game][label] for game in shared.games] for label in shared.labels}
    every = [own for group in curves.values() for own in group]
    begin, recorded = max(own.edges["frames"][0] for own in every), min(own.values[RETURN].shape[1] for own in every)
    edges = np.linspace(begin, shared.frames, min(CURVE_POINTS, recorded) + 1)
    table = next(iter(suite.human))
    result = []
    for label, group in curves.items():
        values = [suite.normalised(table, own.place, own.means(RETURN, edges)) for own in group]
        median = np.median([own.mean(axis=0) for own in values], axis=0)
        result.append(
            MedianCurve(label, len(group), (edges[:-1] + edges[1:]) / 2, median, *grouped_median_band(values))
        )
    return result


PAPER_COUNTS = (30, 14, 5)
"""Games in which Meta-PWTD is better than A2C, worse, and a tie, as the paper counts them."""
PAPER_FRAMES = 200_000_000
"""What we take the paper's training to be."""
OTHER = "a2c-rr"
LEAST_GAMES = 3
"""Of MinAtar, in which one of the methods is better than random play; with fewer nothing is said."""


@claim(
    "A1",
    "On Atari Meta-PWTD is better than A2C in 30 of 49 games, worse in 14, and ties in 5; its median "
    "human-normalised score is slightly above A2C's, and both are above A2C-RR's.",
    "Experiments on Standard RL Benchmarks, figure of relative performance",
)
def _atari(runs: Sequence[Run]) -> tuple[Status, str]:
    found = all_games(runs, ATARI)
    compared = comparisons(found, ATARI)
    judged = [own for own in compared if own.outcome != "open"]
    if not judged:
        return "not judged", _none_there(ATARI, compared)
    frames = min(own.frames for own in judged)
    whole = len(judged) == len(ATARI.random)
    better, worse, tie = counts([own.outcome for own in judged])
    parts = [
        f"{len(judged)} of {len(ATARI.random)} games, {frames / 1e6:.4g} M frames (the paper: 49 games, we take it for "
        f"{PAPER_FRAMES / 1e6:g} M): by 95 % intervals Meta-PWTD is better than A2C in {better}, worse in {worse}, and "
        f"ties in {tie}",
        "by means alone {} better, {} worse, {} ties (the paper: {}, {}, {})".format(
            *counts([own.by_means for own in judged]), *PAPER_COUNTS
        ),
    ]
    shared = shared_games({own.game: found[own.game] for own in judged}, LEAST_SEEDS)
    assert shared is not None  # the judged games at least
    contradicted, medians = _medians(found, shared)
    parts += medians
    if OTHER not in shared.labels:
        parts.append(f"{title(OTHER)} has not played all of these games as long, with at least {LEAST_SEEDS} seeds")
    text = "; ".join(parts) + "."
    if not whole or frames < PAPER_FRAMES:
        return "not judged", text
    if better <= worse or contradicted:
        return "fails", text
    return ("holds" if OTHER in shared.labels else "not judged"), text


def _medians(found: Games, shared: Shared) -> tuple[bool, list[str]]:
    """Whether the order of the methods by their median human-normalised scores is contradicted, and the numbers."""
    own, old = (normalised_scores(found, ATARI, table, shared) for table in (HUMAN, HUMAN_2015))
    parts = [
        f"{name} " + ", ".join(f"{title(label)} {bootstrap(x, statistic).text('.3f')}" for label, x in scores.items())
        for name, scores, statistic in (
            ("median human-normalised score", own, median_of_games),
            ("with the human scores of 2015", old, median_of_games),
            ("interquartile mean", own, interquartile_mean_of_games),
        )
    ]
    contradicted = False
    for first, second in ((OURS, BASELINE), (OURS, OTHER), (BASELINE, OTHER)):
        if first in own and second in own:
            difference = difference_of(median_of_games, own[first], own[second])
            contradicted |= difference.high < 0
            remark = " (the wrong way round)" if difference.high < 0 else " (a tie)" if difference.low <= 0 else ""
            parts.append(f"median of {title(first)} minus {title(second)} {difference.text('.3f')}{remark}")
    return contradicted, parts


@claim(
    "M1",
    "On MinAtar, which the paper does not have, Meta-PWTD is not worse than A2C: what it adds to learn does not "
    "make learning slower where nothing asks for it.",
    "Experiments on Standard RL Benchmarks, the question asked there",
)
def _minatar(runs: Sequence[Run]) -> tuple[Status, str]:
    compared = comparisons(all_games(runs, MINATAR), MINATAR)
    judged = [own for own in compared if own.outcome != "open"]
    if not judged:
        return "not judged", _none_there(MINATAR, compared)
    learned = [own for own in judged if _learned(own)]
    better, worse, tie = counts([own.outcome for own in learned])
    texts = [f"{name_of(own.game)}: {_numbers(own)}{'' if _learned(own) else ', not learned'}" for own in judged]
    frames = min(own.frames for own in judged)
    text = (
        f"{len(judged)} of {len(MINATAR.random)} games, {frames / 1e6:.4g} M frames: by 95 % intervals Meta-PWTD is "
        f"better than A2C in {better}, worse in {worse}, and ties in {tie}; {'; '.join(texts)}."
    )
    if len(judged) < len(MINATAR.random) or len(learned) < LEAST_GAMES:
        return "not judged", text
    return ("fails" if worse > better else "holds"), text


def _learned(own: Comparison) -> bool:
    """Whether one of the two is better than random play."""
    return max(mean_interval(scores).low for scores in (own.ours, own.baseline)) > MINATAR.random[own.game]


def _numbers(own: Comparison) -> str:
    means = f"A2C {own.baseline.mean():.2f}, Meta-PWTD {own.ours.mean():.2f}"
    return f"{means}, difference {own.difference.text('.2f')} ({own.outcome})"


def _none_there(suite: Suite, compared: Sequence[Comparison]) -> str:
    fewer = f"{len(compared)} of {len(suite.random)} games have fewer" if compared else "there are none"
    return (
        f"Runs of A2C and Meta-PWTD on games of {suite.title}, with at least {LEAST_SEEDS} seeds each in which games "
        f"have ended, are needed; {fewer}."
    )


CLAIMS = (_atari, _minatar)
