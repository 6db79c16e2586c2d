"""All figures and tables, in the order of a report."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial

from matplotlib.figure import Figure

from paircredit.figures import (
    dag_curves,
    dag_episodes,
    dag_switches,
    dag_weights,
    estimator_quality,
    masked_values,
    umbrella_variance,
)
from paircredit.figures.tables import Table
from paircredit.runs.read import Run


@dataclasses.dataclass(frozen=True)
class FigureSpec:
    """A figure.

    Attributes:
        name: of its files and of its place in the report.
        title: a few words.
        caption: what is seen, and what the paper shows there.
        draw: from runs to the figure; None when the runs it needs are not there.
    """

    name: str
    title: str
    caption: str
    draw: Callable[[Sequence[Run]], Figure | None]


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


_WEIGHTS_CAPTION = (
    "Each cell is the weight with which the reward or TD error on entering the state of the column counts for an "
    "action in the state of the row. Rows are the states with a choice, columns are all states with the terminal one "
    "last, thin lines separate layers, and white pairs cannot follow each other. The handcrafted weight is 1 exactly "
    "where the reward depends on the action. Learned weights start near 0.5. The paper shows Meta-PWR weights that "
    "rose where the handcrafted ones are 1 and fell where they are 0, and Meta-PWTD weights that are high on the "
    "unpaid transitions of the first phase. "
)
_WEIGHTS_PLACE = {
    4: "Depth 4 is in the paper's appendix.",
    8: "Depth 8 is Figure 3 of the paper.",
    16: "Depth 16 is in the paper's appendix; of its 255 × 766 cells, insets enlarge the crowded upper right corner.",
}

FIGURES: tuple[FigureSpec, ...] = (
    FigureSpec(
        "umbrella-variance",
        "Umbrella: variance of the decision's advantage",
        "The morning's decision alone determines the last reward, and T−1 noisy rewards of variance σ² lie between. "
        "Points are the measured variance of the first action's Monte Carlo advantage, two per length because there "
        "are two actions; lines are the prediction (T−1)σ². The strip below shows pairwise weighted rewards with "
        "weight on the last reward only, on a linear axis because a logarithmic one has no 0. The paper derives both "
        "and draws neither: (T−1)σ² for Monte Carlo, exactly 0 for the pairwise weights.",
        umbrella_variance.draw,
    ),
    *(
        FigureSpec(
            f"dag-weights-{depth}",
            f"DAG of depth {depth}: pair weights",
            _WEIGHTS_CAPTION + place,
            partial(dag_weights.draw, depth=depth),
        )
        for depth, place in _WEIGHTS_PLACE.items()
    ),
    FigureSpec(
        "dag-episodes",
        "DAG: episodes until learned",
        "For every depth and method the median number of episodes until the exact expected return of the policy is "
        "95 % of the best, with a 95 % bootstrap interval as a bar and each trained policy as a dot; low is good, and "
        "policies that never get there lie on a dotted line at the top. Learned weights were fixed before these "
        "policies were trained. Figure 2 (right) of the paper shows averages over five runs: learned weights are at "
        "least as fast as handcrafted ones, both are faster than the regular return, and the gap grows with the depth.",
        dag_episodes.draw,
    ),
    FigureSpec(
        "dag-curves",
        "DAG: learning curves",
        "The exact expected return of the policy against episodes of training: lines are means over trained policies, "
        "bands are 95 % bootstrap intervals of the mean, and the dashed line is 95 % of the best return. The appendix "
        "of the paper shows the same curves as means of five seeds, with every method at the optimum by 10,000 "
        "episodes.",
        dag_curves.draw,
    ),
    FigureSpec(
        "masked-values",
        "Meta-PWTD with a masked optimal value function",
        "The value function is held at the optimal one with zeros in all layers up to the mask, and Meta-PWTD learns "
        "weights for its TD errors. The marked line lies behind the last state of the middle layer; rewards are paid "
        "to its right. The appendix of the paper shows that with mask 0 the weights change mostly to the left of the "
        "line, that with mask 4 everything before the middle layer stays at its start, that no weight goes to the "
        "right of the line in either case, and that with mask 8 the weights look like those of Meta-PWR.",
        masked_values.draw,
    ),
    FigureSpec(
        "estimator-quality",
        "Gradient estimates against the exact gradient",
        "Each dot compares the policy gradient estimates of one advantage estimator with the exact gradient, all on "
        "the same episodes. The signal-to-noise ratio is the squared length of the mean estimate over its total "
        "variance; it says nothing about direction, so the cosine with the exact gradient stands beside it, and the "
        "relative bias, which counts a wrong length as well as a wrong direction. A small bias is also what chance "
        "alone gives, as the table says. The paper has no such figure; it argues that weights like the handcrafted "
        "and learned ones lower the variance of advantages.",
        estimator_quality.draw,
    ),
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
)
