"""Atari and MinAtar as sets of games that are shown and judged alike, and the curves of runs on them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from paircredit.envs.atari.games import GAMES
from paircredit.results.curves import Curve, curves
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
