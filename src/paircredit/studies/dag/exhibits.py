"""What is shown of the DAG: weights, how fast methods learn with them, masked values, and the open choices."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from paircredit.envs.dag import DagConfig, acting_states
from paircredit.results.charts import (
    LOOKS,
    QUIET,
    Line,
    Panel,
    grid,
    legend_above,
    lines,
    looks,
    styled,
)
from paircredit.results.curves import Curve
from paircredit.results.exhibits import Exhibit
from paircredit.results.intervals import Interval, mean_interval, median_interval, median_of_times
from paircredit.results.names import runs_of, title
from paircredit.results.tables import Table, column, interval, plain_table, table
from paircredit.runs.read import Run
from paircredit.studies.dag import estimators
from paircredit.studies.dag.measures import (
    LABELS,
    SHARE_OF_BEST,
    best_return,
    by_table,
    episodes,
    evaluation_times,
    evaluations,
    finished_run,
    mean_weight,
    next_transition,
    pair_sets,
    sampled_times,
)
from paircredit.studies.dag.runs import EVALUATION, MASKED, RESET, SWITCH_EVALUATION, SWITCH_RESET
from paircredit.studies.dag.weights import draw_heatmaps
from paircredit.weights import handcrafted_weights

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LAST_EPISODE = 10_000
MOST_POINTS = 160
"""Per curve; more would only make files larger."""
DIGEST_POINTS = 125
_BESIDE = 0.19
"""Distance between methods; depths are 1 apart."""


@styled
def _weights(runs: Sequence[Run], depth: int) -> Figure | None:
    """Heat maps of the handcrafted weights and of the mean learned ones, where there are reset runs at this depth."""
    learned = []
    for label in ("meta-pwr", "meta-pwtd"):
        run = finished_run(runs, RESET, depth, label)
        if run is not None:
            tables = run.arrays()["weights"]
            learned.append((f"{title(label)}, mean of {len(tables)} seeds", tables.mean(axis=0, dtype=float)))
    if not learned:
        return None
    handcrafted = np.asarray(handcrafted_weights(DagConfig(depth).build()).table)
    return draw_heatmaps([("Handcrafted", handcrafted), *learned], depth)


@styled
def _masked_values(runs: Sequence[Run]) -> Figure | None:
    """A heat map for every mask: the mean of its weight tables."""
    run = finished_run(runs, MASKED)
    if run is None:
        return None
    arrays = run.arrays()
    weights, masks = arrays["weights"], arrays["label_mask"]
    panels = []
    for mask in np.unique(masks):
        masked = f"0 up to layer {mask}" if mask else "nothing masked"
        own = weights[masks == mask]
        panels.append((f"Mask {mask}: {masked}, mean of {len(own)} seeds", own.mean(axis=0, dtype=float)))
    return draw_heatmaps(panels, run.spec["tags"]["depth"], mark_middle=True)


@styled
def _curves(runs: Sequence[Run]) -> Figure | None:
    """A panel per depth with a curve per method."""
    found = evaluations(runs)
    depths = sorted({curve.place for curve in found})
    if not depths:
        return None
    figure, panels = grid(len(depths), len(depths), (3.6 * len(depths) + 0.4, 3.9))
    for axes, depth in zip(panels, depths, strict=True):
        own = [_line(curve) for curve in found if curve.place == depth]
        lines(axes, Panel(f"depth {depth}", own), looks(LABELS))
        _finish(axes, depth)
    panels[0].set_ylabel("expected return")
    legend_above(figure)
    return figure


def _line(curve: Curve) -> Line:
    at = episodes(curve)
    within = np.flatnonzero(at <= LAST_EPISODE)
    chosen = np.unique(within[np.linspace(0, len(within) - 1, MOST_POINTS).round().astype(int)])
    return Line(curve.label, at[chosen], curve.values["expected_return"][:, chosen])


def _finish(axes: Axes, depth: int) -> None:
    best = best_return(depth)
    axes.axhline(SHARE_OF_BEST * best, color=QUIET, linewidth=1, linestyle="--", zorder=1)
    axes.annotate(
        "95 % of the best return",
        (1, SHARE_OF_BEST * best),
        xycoords=axes.get_yaxis_transform(),
        xytext=(-2, -4),
        textcoords="offset points",
        ha="right",
        va="top",
        fontsize=9,
        color="#555555",
    )
    axes.set_title(f"depth {depth}")
    axes.set_xlim(0, LAST_EPISODE)
    axes.set_ylim(top=best * 1.04)
    axes.set_yticks(np.linspace(0, best, 5))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_xticks(range(0, LAST_EPISODE + 1, 5_000))
    axes.set_xticks(range(0, LAST_EPISODE + 1, 1_000), minor=True)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlabel("episodes")


@dataclasses.dataclass(frozen=True)
class Times:
    """Episodes to 95 % of the best return, of one method at one depth.

    Attributes:
        depth: of the DAG.
        label: of the method.
        members: episodes of each member, inf where it never got there.
        median: of them; members that share a table of learned weights are resampled together.
        sampled_median: the median by the returns of training batches, averaged over ten.
        trained: how many episodes there were.
    """

    depth: int
    label: str
    members: np.ndarray
    median: Interval
    sampled_median: float
    trained: int


@styled
def _episodes(runs: Sequence[Run]) -> Figure | None:
    """Median, interval and members of every method, side by side at every depth."""
    times = _times(runs)
    if not times:
        return None
    places = {depth: place for place, depth in enumerate(sorted({entry.depth for entry in times}))}
    figure, (axes,) = grid(1, 1, (8.0, 5.0))
    reached = [value for entry in times for value in entry.members if np.isfinite(value)]
    never = max(entry.trained for entry in times) * 1.04
    for entry in times:
        offset = (LABELS.index(entry.label) - (len(LABELS) - 1) / 2) * _BESIDE
        _draw_times(axes, entry, places[entry.depth] + offset, never)
    if any(np.isinf(entry.members).any() for entry in times):
        axes.axhline(never, color=QUIET, linewidth=0.8, linestyle=":", zorder=0)
        axes.text(-0.5, never * 1.07, "never, in all of training", color="#555555", fontsize=9, va="bottom")
        axes.set_ylim(0, never * 1.14)
    else:
        axes.set_ylim(0, max(reached) * 1.06)
    axes.set_xlim(-0.55, len(places) - 0.45)
    axes.set_xticks(list(places.values()), [f"depth {depth}" for depth in places])
    axes.tick_params(axis="x", length=0)
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.grid(axis="y")
    axes.set_ylabel("episodes to 95 % of the best return")
    handles, names = axes.get_legend_handles_labels()
    unique = dict(zip(names, handles, strict=True))
    figure.legend(unique.values(), unique.keys(), loc="outside upper center", ncols=len(unique), markerscale=1.5)
    return figure


def _episodes_table(runs: Sequence[Run]) -> Table | None:
    """A row per depth and method."""
    return table(
        _times(runs),
        column("depth", "depth", lambda own: own.depth),
        column("method", "method", lambda own: title(own.label)),
        column("members", "members", lambda own: len(own.members)),
        column("reached", "reached 95 %", lambda own: int(np.isfinite(own.members).sum())),
        interval("median_episodes", "median episodes", lambda own: own.median, ",.0f", ends=""),
        column("median_by_batches", "median, by training batches", lambda own: own.sampled_median, ",.0f"),
    )


def _times(runs: Sequence[Run]) -> list[Times]:
    times = []
    for curve in evaluations(runs):
        members, trained = evaluation_times(curve), int(episodes(curve)[-1])
        median = median_of_times(by_table(curve, members))
        sampled = float(np.median(sampled_times(curve)))
        times.append(Times(curve.place, curve.label, members, median, sampled, trained))
    return times


def _draw_times(axes: Axes, entry: Times, place: float, never: float) -> None:
    colour, marker, _ = LOOKS[entry.label]
    ordered = np.sort(entry.members)
    sideways = place + 0.065 + 0.02 * (np.arange(len(ordered)) % 2)
    axes.plot(
        sideways, np.where(np.isfinite(ordered), ordered, never), "o", color=colour, alpha=0.55, markersize=3, mew=0
    )
    low, high = min(entry.median.low, never), min(entry.median.high, never)
    axes.plot([place, place], [low, high], color=colour, linewidth=12, alpha=0.3, solid_capstyle="butt")
    axes.plot(
        [place],
        [min(entry.median.estimate, never)],
        marker,
        color=colour,
        markersize=5.5,
        markeredgecolor="white",
        markeredgewidth=0.6,
        label=title(entry.label),
    )
    missing = int(np.isinf(entry.members).sum())
    if missing:
        axes.annotate(
            f"{missing} of {len(entry.members)}",
            (place, never),
            xytext=(10, 6),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=8,
            color=colour,
        )


@dataclasses.dataclass(frozen=True)
class Choice:
    """What an open choice does: the learned weights, and episodes to 95 % of fresh policies where they were trained."""

    switch: str
    label: str
    depth: int
    weights: np.ndarray
    times: np.ndarray | None

    def mean(self, pairs: np.ndarray) -> float:
        """The mean weight over some pairs and all tables."""
        return mean_interval(mean_weight(self.weights, pairs)).estimate

    def median(self) -> tuple[float | None, float | None, float | None]:
        """Of the episodes, with its interval where all have learned."""
        if self.times is None:
            return None, None, None
        found = median_interval(self.times) if np.isfinite(self.times).all() else None
        return float(np.median(self.times)), found and found.low, found and found.high


def _choices(runs: Sequence[Run]) -> list[Choice]:
    times = {
        (curve.variant[0], curve.label): by_table(curve, evaluation_times(curve))
        for curve in evaluations(runs, SWITCH_EVALUATION)
    }
    found: dict[tuple[str, str], Choice] = {}
    for run in runs_of(runs, SWITCH_RESET):
        if run.finished:
            switch, label, depth = (run.spec["tags"][name] for name in ("switch", "label", "depth"))
            weights = run.arrays()["weights"]
            found[switch, label] = Choice(switch, label, depth, weights, times.get((switch, label)))
    return list(found.values())


def _switches_table(runs: Sequence[Run]) -> Table | None:
    """A row per switch and method."""
    return table(
        _choices(runs),
        column("switch", "switch", lambda own: own.switch),
        column("method", "method", lambda own: title(own.label)),
        column(
            "weight_credited",
            "weight where handcrafted is 1",
            lambda own: own.mean(pair_sets(own.depth).credited),
            ".2f",
        ),
        column("weight_uncredited", "where it is 0", lambda own: own.mean(pair_sets(own.depth).uncredited), ".2f"),
        column(
            "weight_next_transition",
            "on the next transition",
            lambda own: own.mean(next_transition(own.depth)),
            ".2f",
        ),
        interval("episodes_to_95", "episodes to 95 %", Choice.median, ",.0f", ends=""),
    )


def digest(runs: Sequence[Run]) -> dict[str, Table | None]:
    """The exact expected return of the members of every evaluation, at some hundred points."""
    rows: list[list[Any]] = []
    for run in runs_of(runs, EVALUATION):
        for curve in evaluations([run]):
            at, returns = episodes(curve), curve.values["expected_return"]
            for point in np.unique(np.linspace(0, len(at) - 1, DIGEST_POINTS).round().astype(int)):
                own = returns[:, point]
                numbers = [own.mean(), own.std(), own.min(), own.max()]
                rows.append([run.name, int(at[point]), len(own), *(round(float(x), 4) for x in numbers)])
    names = ("run", "episodes", "members", "mean", "deviation", "lowest", "highest")
    return {"curves.csv": plain_table(names, rows)}


def kept_weights(runs: Sequence[Run]) -> dict[str, np.ndarray]:
    """Learned tables, rows of acting states, in half precision: mean and deviation over the seeds (of each mask)."""
    arrays: dict[str, np.ndarray] = {}
    for run in runs:
        tags = run.spec.get("tags", {})
        if tags.get("role") not in (RESET, MASKED, SWITCH_RESET) or not run.finished:
            continue
        content = run.arrays()
        rows = content["weights"][:, acting_states(tags["depth"])]
        masks = content.get("label_mask", np.zeros(len(rows), dtype=int))
        for mask in np.unique(masks):
            name = run.name if "label_mask" not in content else f"{run.name}-{mask}"
            arrays[f"{name}-mean"] = rows[masks == mask].mean(axis=0).astype(np.float16)
            arrays[f"{name}-deviation"] = rows[masks == mask].std(axis=0).astype(np.float16)
    return arrays


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

FIGURES = (
    *(
        Exhibit(
            f"dag-weights-{depth}",
            f"DAG of depth {depth}: pair weights",
            _WEIGHTS_CAPTION + place,
            partial(_weights, depth=depth),
        )
        for depth, place in _WEIGHTS_PLACE.items()
    ),
    Exhibit(
        "dag-episodes",
        "DAG: episodes until learned",
        "For every depth and method the median number of episodes until the exact expected return of the policy is "
        "95 % of the best, with a 95 % bootstrap interval as a bar and each trained policy as a dot; low is good, and "
        "policies that never get there lie on a dotted line at the top. Learned weights were fixed before these "
        "policies were trained. Figure 2 (right) of the paper shows averages over five runs: learned weights are at "
        "least as fast as handcrafted ones, both are faster than the regular return, and the gap grows with the depth.",
        _episodes,
    ),
    Exhibit(
        "dag-curves",
        "DAG: learning curves",
        "The exact expected return of the policy against episodes of training: lines are means over trained policies, "
        "bands are 95 % bootstrap intervals of the mean, and the dashed line is 95 % of the best return. The appendix "
        "of the paper shows the same curves as means of five seeds, with every method at the optimum by 10,000 "
        "episodes.",
        _curves,
    ),
    Exhibit(
        "masked-values",
        "Meta-PWTD with a masked optimal value function",
        "The value function is held at the optimal one with zeros in all layers up to the mask, and Meta-PWTD learns "
        "weights for its TD errors. The marked line lies after the last state of the middle layer; rewards are paid "
        "to its right. The appendix of the paper shows that with mask 0 the weights change mostly to the left of the "
        "line, that with mask 4 everything before the middle layer stays at its start, that no weight goes to the "
        "right of the line in either case, and that with mask 8 the weights look like those of Meta-PWR.",
        _masked_values,
    ),
    Exhibit(
        "estimator-quality",
        "Gradient estimates against the exact gradient",
        "Each dot compares the policy gradient estimates of one advantage estimator with the exact gradient, all on "
        "the same episodes. The signal-to-noise ratio is the squared length of the mean estimate over its total "
        "variance; it says nothing about direction, so the cosine with the exact gradient stands beside it, and the "
        "relative bias, which counts a wrong length as well as a wrong direction. A small bias is also what chance "
        "alone gives, as the table says. The paper has no such figure; it argues that weights like the handcrafted "
        "and learned ones lower the variance of advantages.",
        estimators.draw,
    ),
)
TABLES = (
    Exhibit(
        "dag-episodes",
        "Episodes to 95 % of the best return",
        "Medians over trained policies with 95 % bootstrap intervals, by the exact expected return of the policy. The "
        "last column goes by the mean return of the last ten training batches instead. ∞ means that it was not reached "
        "in training.",
        _episodes_table,
    ),
    Exhibit(
        "estimator-quality",
        "Gradient estimates against the exact gradient g",
        "Bias by chance is the length that the bias would have from sampling alone if the estimator were unbiased.",
        estimators.quality_table,
    ),
    Exhibit(
        "dag-switches",
        "What the paper leaves open, tried both ways",
        "Mean learned weight where the handcrafted weight is 1, where it is 0 though a reward is paid, and on the "
        "transition that the action itself makes; and median episodes to 95 % of the best return of fresh policies "
        "trained with these weights, with 95 % intervals. Each row changes one switch.",
        _switches_table,
    ),
)
