"""The paper's claim about Atari, and the same question asked of MinAtar: does Meta-PWTD do better than A2C or worse?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from paircredit.results.exhibits import LEAST_SEEDS, Claim, Status
from paircredit.results.intervals import bootstrap, mean_interval
from paircredit.results.names import title
from paircredit.runs.read import Run
from paircredit.studies.games.curves import (
    ATARI,
    BASELINE,
    HUMAN,
    HUMAN_2015,
    MINATAR,
    OURS,
    Comparison,
    Games,
    Shared,
    Suite,
    all_games,
    comparisons,
    counts,
    interquartile_mean_of_games,
    median_difference_of_games,
    median_of_games,
    name_of,
    normalised_scores,
    shared_games,
)

PAPER_COUNTS = (30, 14, 5)
"""Games in which Meta-PWTD is better than A2C, worse, and a tie, as the paper counts them."""
PAPER_FRAMES = 200_000_000
"""What we take the paper's training to be."""
OTHER = "a2c-rr"
LEAST_GAMES = 3
"""Of MinAtar, in which one of the methods is better than random play; with fewer nothing is said."""


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
    own = normalised_scores(found, ATARI, HUMAN, shared)
    old = normalised_scores(found, ATARI, HUMAN_2015, shared)
    parts = [
        f"median human-normalised score {_each(own, median_of_games)}",
        f"with the human scores of 2015 {_each(old, median_of_games)}",
        f"interquartile mean {_each(own, interquartile_mean_of_games)}",
    ]
    contradicted = False
    for first, second in ((OURS, BASELINE), (OURS, OTHER), (BASELINE, OTHER)):
        if first in own and second in own:
            difference = median_difference_of_games(own[first], own[second])
            contradicted |= difference.high < 0
            remark = " (the wrong way round)" if difference.high < 0 else " (a tie)" if difference.low <= 0 else ""
            parts.append(f"median of {title(first)} minus {title(second)} {difference.text('.3f')}{remark}")
    return contradicted, parts


def _each(scores: Mapping[str, Sequence[np.ndarray]], statistic: Callable[..., np.ndarray]) -> str:
    return ", ".join(f"{title(label)} {bootstrap(own, statistic).text('.3f')}" for label, own in scores.items())


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


CLAIMS = (
    Claim(
        "A1",
        "On Atari Meta-PWTD is better than A2C in 30 of 49 games, worse in 14, and ties in 5; its median "
        "human-normalised score is slightly above A2C's, and both are above A2C-RR's.",
        "Experiments on Standard RL Benchmarks, figure of relative performance",
        _atari,
    ),
    Claim(
        "M1",
        "On MinAtar, which the paper does not have, Meta-PWTD is not worse than A2C: what it adds to learn does not "
        "make learning slower where nothing asks for it.",
        "Experiments on Standard RL Benchmarks, the question asked there",
        _minatar,
    ),
)
