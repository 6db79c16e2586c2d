"""All figures, in the order of a report."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial

from matplotlib.figure import Figure

from paircredit.analysis.game_suites import ATARI, MINATAR
from paircredit.analysis.key_to_door_results import SEARCHES
from paircredit.figures import (
    bsuite_regret,
    dag_curves,
    dag_episodes,
    dag_weights,
    estimator_quality,
    game_bars,
    game_curves,
    key_to_door_central,
    key_to_door_curves,
    key_to_door_frames,
    key_to_door_search,
    key_to_door_switches,
    key_to_door_weights,
    masked_values,
    training_curves,
    training_weights,
    umbrella_variance,
)
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

_CURVES = {
    "return": ("episode_return", "episode return"),
    "door": ("door_reward", "reward in the door phase"),
    "apples": ("apple_reward", "reward in the apple phase"),
}
_CURVES_CAPTION = (
    "A panel per setting: rows by the mean μ of what an apple pays, columns by its variance σ². Lines are means over "
    "seeds, bands are 95 % bootstrap intervals of the mean, and the dashed line is the most that can be expected. "
)
_CURVES_PAPER = {
    "return": "The appendix of the paper shows the same nine panels as means of ten seeds with standard errors; H-PWR "
    "is best, and Meta-PWR and Meta-PWTD are in general better than the baselines.",
    "door": "The appendix of the paper shows the same nine panels as means of ten seeds; the door is what asks for "
    "credit over a long time, and Meta-PWR is in general the fastest after H-PWR there.",
    "apples": "The appendix of the paper shows the same nine panels as means of ten seeds; apples pay soon after the "
    "action, so that a steep discount helps here.",
}

_GAME_CURVES_CAPTION = (
    "Lines are means over seeds, bands are 95 % bootstrap intervals of the mean, the dashed line is random play. "
    "Curves begin when every seed has ended a game. "
)

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
    FigureSpec(
        "key-to-door-central",
        "Key-to-Door: learning curves at μ = 5, σ² = 25",
        "Episode return and reward of the door phase against frames: lines are means over seeds, bands are 95 % "
        "bootstrap intervals of the mean, and dashed lines are the most that can be expected. This is the setting on "
        "which the paper tunes. Its Figure 5 shows these curves for three settings: H-PWR is best, Meta-PWR the "
        "fastest after it in the door phase, and Meta-PWTD slower, but at the optimum in the end.",
        key_to_door_central.draw,
    ),
    *(
        FigureSpec(
            f"key-to-door-{name}{'-slip' if slips else ''}",
            f"Key-to-Door: {words}{', 10 % random actions' if slips else ''}",
            ("Each action is replaced by a random one with probability 0.1. " if slips else "")
            + _CURVES_CAPTION
            + _CURVES_PAPER[name],
            partial(key_to_door_curves.draw, quantity=quantity, slips=slips),
        )
        for slips in (False, True)
        for name, (quantity, words) in _CURVES.items()
    ),
    FigureSpec(
        "key-to-door-frames",
        "Key-to-Door: frames until learned",
        "For every setting and method the median number of frames until the mean door reward of the last 320 episodes "
        "is 9 (left) or 9.5 (right), of 10 at most, with a 95 % bootstrap interval as a bar and each seed as a dot; "
        "left is good. Seeds that never get there stand on the dotted line. The paper has curves and no such numbers; "
        "from its text one expects H-PWR on the left and Meta-PWR next in every setting.",
        key_to_door_frames.draw,
    ),
    FigureSpec(
        "key-to-door-weights",
        "Key-to-Door: pair weights",
        "Each cell is the weight with which what arrives at the step of the column counts for the action at the step "
        "of the row; lines separate the key, apple and door phases. Learned weights are averages over the episodes of "
        "the last batch and over seeds. Figure 4 of the paper shows that the handcrafted and the Meta-PWR weights "
        "look alike: actions of the key phase (top rows) are credited with the door (right) and not with apples, and "
        "inside the apple phase credit falls steeply with the delay.",
        key_to_door_weights.draw,
    ),
    FigureSpec(
        "key-to-door-weights-over-time",
        "Key-to-Door: Meta-PWR's weights in the course of training",
        "The same picture at several moments of training, means over episodes and seeds. The paper shows the end only.",
        key_to_door_weights.draw_over_time,
    ),
    FigureSpec(
        "key-to-door-search",
        "Key-to-Door: A2C with other λ and learning rates",
        "Left: median frames until the mean door reward of the last 320 episodes is 9; low is good, and hollow markers "
        "never get there. Right: the mean door reward over the last tenth of training. Bars are 95 % bootstrap "
        "intervals. The paper compares with the best fixed λ of such a search, and does not show it.",
        key_to_door_search.draw,
    ),
    FigureSpec(
        "key-to-door-switches",
        "Key-to-Door: what the paper leaves open, tried both ways",
        "Each line changes one switch of a method; the first is the default. Left: median frames until the mean door "
        "reward of the last 320 episodes is 9, with 95 % bootstrap intervals and a dot per seed. Right: this mean "
        "itself, at the end of the shortest training, averaged over seeds. The paper does not state these choices.",
        key_to_door_switches.draw,
    ),
    FigureSpec(
        "key-to-door-searches",
        "Key-to-Door: the other methods' hyperparameters",
        "All combinations that the paper's appendix searched for each method, drawn as in the figure before. The paper "
        "names the best and does not show the search.",
        partial(key_to_door_switches.draw, role=SEARCHES),
    ),
    FigureSpec(
        "bsuite-regret",
        "bsuite: regret in the course of training",
        "The mean regret of an episode against the episodes of training, over all variants and seeds of a domain; low "
        "is good. Bands are 95 % bootstrap intervals of the mean, in which the variants are as they are and the seeds "
        "are drawn. The dashed line is what random play costs. The area under a curve is the total regret, which is "
        "all that the paper shows.",
        bsuite_regret.draw,
    ),
    FigureSpec(
        "bsuite-settings",
        "bsuite: regret by noise, scale, length, distractors and bonus chain",
        "The mean regret of all episodes of training for every setting of the domains whose variants differ, with "
        "95 % bootstrap intervals over seeds; low is good. The paper has means over the variants only.",
        bsuite_regret.draw_totals,
    ),
    *(
        FigureSpec(
            f"bsuite-curves-{domain.replace('_', '-')}",
            f"bsuite: {bsuite_regret.TITLES[domain].lower()}, every setting",
            "The mean regret of an episode against the episodes of training, a panel per setting of the domain. Lines "
            "are means over seeds, bands are 95 % bootstrap intervals, and the dashed line is random play. The paper "
            "does not show these.",
            partial(bsuite_regret.draw_settings, domain=domain),
        )
        for domain in bsuite_regret.VARIED
    ),
    FigureSpec(
        "atari-relative",
        "Atari: Meta-PWTD beside A2C",
        "Top: by how much Meta-PWTD's score is better than A2C's, as a share of the better of A2C and a person, each "
        "less random play; lines are 95 % bootstrap intervals over seeds. Where a difference is beyond 150 % the "
        "axis is linear up to 10 % and logarithmic beyond. Bottom: the median over games of the human-normalised "
        "score, 0 for random play and 1 for a person, with 95 % bootstrap intervals in which seeds are drawn and "
        "games are not. Figure 6 of the paper shows both, the curves as an inset: 30 games better, 14 worse, 5 ties, "
        "and Meta-PWTD slightly above A2C all the time. The paper does not say what the relative performance is.",
        partial(game_bars.draw, suite=ATARI),
    ),
    FigureSpec(
        "atari-curves",
        "Atari: learning curves",
        "A panel per game: the unclipped return of whole games, the last one of each actor, against frames. "
        + _GAME_CURVES_CAPTION
        + "The appendix of the paper shows the same panels for 49 games as means of five seeds with standard errors.",
        partial(game_curves.draw, suite=ATARI),
    ),
    FigureSpec(
        "minatar-relative",
        "MinAtar: Meta-PWTD beside A2C",
        "By how much Meta-PWTD's score is better than A2C's, as a share of what the better of the two gains over "
        "random play (at least of what random play itself is paid); lines are 95 % bootstrap intervals over seeds. "
        "The paper does not have these games: they are Atari in small, and ask the same question.",
        partial(game_bars.draw, suite=MINATAR),
    ),
    FigureSpec(
        "minatar-curves",
        "MinAtar: learning curves",
        "A panel per game: the return of whole games, the last one of each actor, against frames, of which a step has "
        "one. " + _GAME_CURVES_CAPTION + "The paper does not have these games.",
        partial(game_curves.draw, suite=MINATAR),
    ),
    FigureSpec(
        "training-curves",
        "Own runs: learning curves",
        "What runs of paircredit train recorded in the course of training, against frames: a panel per environment "
        "and quantity, a curve per run. Lines are means over seeds, bands are 95 % bootstrap intervals of the mean. "
        "Runs of the same method are told apart by their folders. They are no part of the paper's experiments.",
        training_curves.draw,
    ),
    FigureSpec(
        "training-weights",
        "Own runs: pair weights",
        "Each cell is the weight with which what arrives in the state (or at the step) of the column counts for an "
        "action in the state (or at the step) of the row, at the end of training. Steps are of the episodes or pieces "
        "of the last batch, over which the weights of networks are averaged. The paper shows such pictures of its DAG "
        "and of Key-to-Door.",
        training_weights.draw,
    ),
)
