"""All tables, in the order of a report."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial

from paircredit.analysis.game_suites import ATARI, MINATAR
from paircredit.analysis.key_to_door_results import SEARCHES
from paircredit.figures import (
    bsuite_regret,
    dag_episodes,
    dag_switches,
    estimator_quality,
    game_tables,
    key_to_door_frames,
    key_to_door_search,
    key_to_door_switches,
    training_curves,
    umbrella_variance,
)
from paircredit.figures.tables import Table
from paircredit.runs.read import Run


@dataclasses.dataclass(frozen=True)
class TableSpec:
    """A table of numbers.

    Attributes:
        name: of its file and of its place in the report.
        title: a few words.
        caption: what the columns are.
        build: from runs to the table; None when the runs it needs are not there.
    """

    name: str
    title: str
    caption: str
    build: Callable[[Sequence[Run]], Table | None]


_SCORES_CAPTION = (
    "Scores are mean returns of whole games over the last tenth of training, means over seeds with 95 % bootstrap "
    "intervals. "
)
_RELATIVE_CAPTION = (
    "Scores after the frames that both trained, their difference and the relative performance of the figure, with 95 % "
    "bootstrap intervals over seeds. Meta-PWTD is better or worse where the interval does not contain 0, and it is "
    "open with fewer than five seeds. By means alone it is a tie where the relative performance reads 0 %. "
)

TABLES: tuple[TableSpec, ...] = (
    TableSpec(
        "dag-episodes",
        "Episodes to 95 % of the best return",
        "Medians over trained policies with 95 % bootstrap intervals, by the exact expected return of the policy. The "
        "last column goes by the mean return of the last ten training batches instead. ∞ means that it was not reached "
        "in training.",
        dag_episodes.table,
    ),
    TableSpec(
        "umbrella-variance",
        "Variance of the first action's advantage",
        "Predicted and measured for Monte Carlo, measured for pairwise weights on the last reward only.",
        umbrella_variance.table,
    ),
    TableSpec(
        "estimator-quality",
        "Gradient estimates against the exact gradient g",
        "Bias by chance is the length that the bias would have from sampling alone if the estimator were unbiased.",
        estimator_quality.table,
    ),
    TableSpec(
        "dag-switches",
        "What the paper leaves open, tried both ways",
        "Mean learned weight where the handcrafted weight is 1, where it is 0 though a reward is paid, and on the "
        "transition that the action itself makes; and median episodes to 95 % of the best return of fresh policies "
        "trained with these weights, with 95 % intervals. Each row changes one switch.",
        dag_switches.table,
    ),
    TableSpec(
        "key-to-door-frames",
        "Key-to-Door: frames to a door reward of 9 and 9.5, and final values",
        "Medians over seeds of the frames after which the mean door reward of the last 320 episodes is at 9 and 9.5, "
        "with 95 % bootstrap intervals; ∞ means not within training. Final values are means over the last tenth of "
        "training; the best is the most that can be expected. The last columns compare at equal frames: those that "
        "every method of the setting trained, means over the last tenth of these.",
        key_to_door_frames.table,
    ),
    TableSpec(
        "key-to-door-search",
        "Key-to-Door: A2C with other λ and learning rates",
        "Medians and 95 % bootstrap intervals over seeds, as in the table before; the final door reward is a mean.",
        key_to_door_search.table,
    ),
    TableSpec(
        "key-to-door-switches",
        "Key-to-Door: what the paper leaves open, tried both ways",
        "Each row changes one switch. Frames to a door reward of 9 are medians over seeds with 95 % bootstrap "
        "intervals; door rewards at given frames are means over the last 320 episodes and over seeds.",
        key_to_door_switches.table,
    ),
    TableSpec(
        "key-to-door-searches",
        "Key-to-Door: the other methods' hyperparameters",
        "A row per combination; columns as in the table before.",
        partial(key_to_door_switches.table, role=SEARCHES),
    ),
    TableSpec(
        "bsuite-regret",
        "bsuite: total regret beside the paper's",
        "The regret of all episodes of a training, mean over all variants and seeds, with 95 % bootstrap intervals in "
        "which seeds are drawn and variants are not. The paper's numbers stand beside trainings of the same length. "
        "Its numbers for cartpole do not fit bsuite's definition, so that only ratios to A2C can be compared there.",
        bsuite_regret.table,
    ),
    TableSpec(
        "bsuite-settings",
        "bsuite: total regret by setting",
        "The same for every setting of a domain; variants that are alike count as further seeds. Intervals are 95 % "
        "bootstrap intervals of the mean over members, beside the smallest and the largest of them.",
        bsuite_regret.settings_table,
    ),
    TableSpec(
        "atari-scores",
        "Atari: scores",
        _SCORES_CAPTION
        + "Normalised scores are 0 for random play and 1 for a person, by the human scores that papers on 57 games "
        "have, and by those of Mnih et al. (2015).",
        partial(game_tables.scores, suite=ATARI),
    ),
    TableSpec(
        "atari-relative",
        "Atari: Meta-PWTD beside A2C, game by game",
        _RELATIVE_CAPTION + "The paper has 30 games better, 14 worse, 5 ties.",
        partial(game_tables.relative, suite=ATARI),
    ),
    TableSpec(
        "atari-summary",
        "Atari: human-normalised scores over games",
        "The median over games of the mean over seeds, and the interquartile mean over games and seeds, after the "
        "frames that all trained, of the methods that have played all games that A2C and Meta-PWTD have. Intervals "
        "are 95 % bootstrap intervals in which seeds are drawn within games.",
        partial(game_tables.summary, suite=ATARI),
    ),
    TableSpec("minatar-scores", "MinAtar: scores", _SCORES_CAPTION.strip(), partial(game_tables.scores, suite=MINATAR)),
    TableSpec(
        "minatar-relative",
        "MinAtar: Meta-PWTD beside A2C, game by game",
        _RELATIVE_CAPTION.strip(),
        partial(game_tables.relative, suite=MINATAR),
    ),
    TableSpec(
        "training-runs",
        "Own runs: returns",
        "Mean returns over the last tenth of the training of every run of paircredit train, with 95 % bootstrap "
        "intervals over seeds where there are several. Settings are those of the method that differ from the preset.",
        training_curves.table,
    ),
)
