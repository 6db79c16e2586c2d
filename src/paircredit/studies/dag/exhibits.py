"""What is shown of the DAG: weights, how fast methods learn with them, masked values, and the open choices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from paircredit.envs.dag import DagConfig, acting_states
from paircredit.results.charts import LOOKS, QUIET, Line, Panel, draw_median, figure, grid, legend_above, lines, note
from paircredit.results.curves import Curve, runs_of, spread
from paircredit.results.exhibits import METHOD, Measure, Table, column, exhibit, interval, plain_table, table, title
from paircredit.results.intervals import Interval, median_interval, median_of_times
from paircredit.runs.read import Run
from paircredit.studies.dag import estimators, measures
from paircredit.studies.dag.measures import LABELS, SHARE_OF_BEST, episodes, evaluation_times, evaluations, finished_run
from paircredit.studies.dag.runs import EVALUATION, LEARNING, MASKED, RESET, SWITCH_EVALUATION, SWITCH_RESET
from paircredit.studies.dag.weights import draw_heatmaps
from paircredit.weights import handcrafted_weights

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LAST_EPISODE = 10_000
MOST_POINTS, DIGEST_POINTS = 160, 125
"""Per curve; more would only make files larger."""
_BESIDE = 0.19
"""Distance between methods; depths are 1 apart."""


def _weights(runs: Sequence[Run], depth: int) -> Figure | None:
    """Heat maps of the handcrafted weights and of the mean learned ones, where there are reset runs at this depth."""
    found = {label: finished_run(runs, RESET, depth, label) for label in LEARNING}
    learned = {title(label): run.arrays()["weights"] for label, run in found.items() if run is not None}
    if not learned:
        return None
    handcrafted = np.asarray(handcrafted_weights(DagConfig(depth).build()).table)
    return draw_heatmaps([("Handcrafted", handcrafted), *(_mean(name, own) for name, own in learned.items())], depth)


def _mean(name: str, tables: np.ndarray) -> tuple[str, np.ndarray]:
    return f"{name}, mean of {len(tables)} seeds", tables.mean(axis=0, dtype=float)


@figure("masked-values", "Meta-PWTD with a masked optimal value function")
def _masked_values(runs: Sequence[Run]) -> Figure | None:
    """A heat map for every mask: the mean of its weight tables.

    The value function is held at the optimal one with zeros in all layers up to the mask, and Meta-PWTD learns weights
    for its TD errors. The marked line lies after the last state of the middle layer; rewards are paid to its right. The
    appendix of the paper shows that with mask 0 the weights change mostly to the left of the line, that with mask 4
    everything before the middle layer stays at its start, that no weight goes to the right of the line in either case,
    and that with mask 8 the weights look like those of Meta-PWR.
    """
    run = finished_run(runs, MASKED)
    if run is None:
        return None
    weights, masks = (run.arrays()[name] for name in ("weights", "label_mask"))
    names = {mask: f"0 up to layer {mask}" if mask else "nothing masked" for mask in np.unique(masks)}
    panels = [_mean(f"Mask {mask}: {name}", weights[masks == mask]) for mask, name in names.items()]
    return draw_heatmaps(panels, run.spec["tags"]["depth"], mark_middle=True)


@figure("dag-curves", "DAG: learning curves")
def _curves(runs: Sequence[Run]) -> Figure | None:
    """A panel per depth with a curve per method.

    The exact expected return of the policy against episodes of training: lines are means over trained policies, bands
    are 95 % bootstrap intervals of the mean, and the dashed line is 95 % of the best return. The appendix of the paper
    shows the same curves as means of five seeds, with every method at the optimum by 10,000 episodes.
    """
    found = evaluations(runs)
    depths = sorted({curve.place for curve in found})
    if not depths:
        return None
    drawn, panels = grid(len(depths), len(depths), (3.6 * len(depths) + 0.4, 3.9))
    for axes, depth in zip(panels, depths, strict=True):
        lines(axes, Panel(f"depth {depth}", [_line(curve) for curve in found if curve.place == depth]), LOOKS)
        _finish(axes, depth)
    panels[0].set_ylabel("expected return")
    legend_above(drawn)
    return drawn


def _line(curve: Curve) -> Line:
    at = episodes(curve)
    chosen = spread(int((at <= LAST_EPISODE).sum()), MOST_POINTS)
    return Line(curve.label, at[chosen], curve.values["expected_return"][:, chosen])


def _finish(axes: Axes, depth: int) -> None:
    best = measures.best_return(depth)
    axes.axhline(SHARE_OF_BEST * best, color=QUIET, linewidth=1, linestyle="--", zorder=1)
    below: dict[str, Any] = {"xycoords": axes.get_yaxis_transform(), "ha": "right", "va": "top"}
    note(axes, "95 % of the best return", (1, SHARE_OF_BEST * best), (-2, -4), **below)
    axes.set_title(f"depth {depth}")
    axes.set_xlim(0, LAST_EPISODE)
    axes.set_ylim(top=best * 1.04)
    axes.set_yticks(np.linspace(0, best, 5))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_xticks(range(0, LAST_EPISODE + 1, 5_000))
    axes.set_xticks(range(0, LAST_EPISODE + 1, 1_000), minor=True)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlabel("episodes")


def _median(curve: Curve) -> Interval:
    """Of the episodes to 95 %; members that share a table of learned weights are resampled together."""
    return median_of_times(measures.by_table(curve, evaluation_times(curve)))


@figure("dag-episodes", "DAG: episodes until learned")
def _episodes(runs: Sequence[Run]) -> Figure | None:
    """Median, interval and members of every method, side by side at every depth.

    For every depth and method the median number of episodes until the exact expected return of the policy is 95 % of
    the best, with a 95 % bootstrap interval as a bar and each trained policy as a dot; low is good, and policies that
    never get there lie on a dotted line at the top. Learned weights were fixed before these policies were trained.
    Figure 2 (right) of the paper shows averages over five runs: learned weights are at least as fast as handcrafted
    ones, both are faster than the regular return, and the gap grows with the depth.
    """
    found = [(curve, evaluation_times(curve)) for curve in evaluations(runs)]
    if not found:
        return None
    depths = sorted({curve.place for curve, _ in found})
    drawn, (axes,) = grid(1, 1, (8.0, 5.0))
    never = max(int(episodes(curve)[-1]) for curve, _ in found) * 1.04
    for curve, times in found:
        offset = (LABELS.index(curve.label) - (len(LABELS) - 1) / 2) * _BESIDE
        _draw_times(axes, curve, times, depths.index(curve.place) + offset, never)
    every = np.concatenate([times for _, times in found])
    if np.isinf(every).any():
        axes.axhline(never, color=QUIET, linewidth=0.8, linestyle=":", zorder=0)
        axes.text(-0.5, never * 1.07, "never, in all of training", color="#555555", fontsize=9, va="bottom")
        axes.set_ylim(0, never * 1.14)
    else:
        axes.set_ylim(0, max(every) * 1.06)
    axes.set_xlim(-0.55, len(depths) - 0.45)
    axes.set_xticks(range(len(depths)), [f"depth {depth}" for depth in depths])
    axes.tick_params(axis="x", length=0)
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.grid(axis="y")
    axes.set_ylabel("episodes to 95 % of the best return")
    legend_above(drawn)
    return drawn


def _draw_times(axes: Axes, curve: Curve, members: np.ndarray, place: float, never: float) -> None:
    look, ordered = LOOKS[curve.label], np.sort(members)
    sideways = place + 0.065 + 0.02 * (np.arange(len(ordered)) % 2)
    shown = np.where(np.isfinite(ordered), ordered, never)
    axes.plot(sideways, shown, "o", color=look.colour, alpha=0.55, markersize=3, mew=0)
    estimate, low, high = (min(value, never) for value in _median(curve))
    axes.plot([place, place], [low, high], color=look.colour, linewidth=12, alpha=0.3, solid_capstyle="butt")
    draw_median(axes, place, estimate, look, title(curve.label))
    missing = int(np.isinf(members).sum())
    if missing:
        small: dict[str, Any] = {"ha": "center", "va": "bottom", "fontsize": 8, "color": look.colour}
        note(axes, f"{missing} of {len(members)}", (place, never), (10, 6), **small)


@exhibit("dag-episodes", "Episodes to 95 % of the best return")
def _episodes_table(runs: Sequence[Run]) -> Table | None:
    """A row per depth and method.

    Medians over trained policies with 95 % bootstrap intervals, by the exact expected return of the policy. The last
    column goes by the mean return of the last ten training batches instead. ∞ means that it was not reached in
    training.
    """
    return table(
        evaluations(runs),
        column("depth", "depth", lambda own: own.place),
        METHOD,
        column("members", "members", lambda own: len(own.seeds)),
        column("reached", "reached 95 %", lambda own: int(np.isfinite(evaluation_times(own)).sum())),
        interval("median_episodes", "median episodes", _median, ",.0f", ends=""),
        column(
            "median_by_batches",
            "median, by training batches",
            lambda own: float(np.median(measures.sampled_times(own))),
            ",.0f",
        ),
    )


class Choice(NamedTuple):
    """What an open choice does: the learned weights, and episodes to 95 % of fresh policies where they were trained."""

    switch: str
    label: str
    depth: int
    weights: np.ndarray
    times: np.ndarray | None

    def mean(self, pairs: np.ndarray) -> float:
        """The mean weight over some pairs and all tables."""
        return float(measures.mean_weight(self.weights, pairs).mean(dtype=float))

    def median(self) -> tuple[float | None, float | None, float | None]:
        """Of the episodes, with its interval where all have learned."""
        if self.times is None:
            return None, None, None
        found = median_interval(self.times) if np.isfinite(self.times).all() else None
        return float(np.median(self.times)), found and found.low, found and found.high


def _choices(runs: Sequence[Run]) -> list[Choice]:
    times = {
        (curve.variant[0], curve.label): measures.by_table(curve, evaluation_times(curve))
        for curve in evaluations(runs, SWITCH_EVALUATION)
    }
    found: dict[tuple[str, str], Choice] = {}
    for run in runs_of(runs, SWITCH_RESET):
        if run.finished:
            switch, label, depth = (run.spec["tags"][name] for name in ("switch", "label", "depth"))
            found[switch, label] = Choice(switch, label, depth, run.arrays()["weights"], times.get((switch, label)))
    return list(found.values())


@exhibit("dag-switches", "What the paper leaves open, tried both ways")
def _switches_table(runs: Sequence[Run]) -> Table | None:
    """A row per switch and method.

    Mean learned weight where the handcrafted weight is 1, where it is 0 though a reward is paid, and on the transition
    that the action itself makes; and median episodes to 95 % of the best return of fresh policies trained with these
    weights, with 95 % intervals. Each row changes one switch.
    """

    def weight(name: str, title: str, pairs: Callable[[int], np.ndarray]) -> Measure:
        return column(f"weight_{name}", title, lambda own: own.mean(pairs(own.depth)), ".2f")

    return table(
        _choices(runs),
        column("switch", "switch", lambda own: own.switch),
        METHOD,
        weight("credited", "weight where handcrafted is 1", lambda depth: measures.pair_sets(depth).credited),
        weight("uncredited", "where it is 0", lambda depth: measures.pair_sets(depth).uncredited),
        weight("next_transition", "on the next transition", measures.next_transition),
        interval("episodes_to_95", "episodes to 95 %", Choice.median, ",.0f", ends=""),
    )


def digest(runs: Sequence[Run]) -> dict[str, Table | None]:
    """The exact expected return of the members of every evaluation, at some hundred points."""
    rows: list[list[Any]] = []
    for run in runs_of(runs, EVALUATION):
        for curve in evaluations([run]):
            at, returns = episodes(curve), curve.values["expected_return"]
            for point in spread(len(at), DIGEST_POINTS):
                own = returns[:, point]
                numbers = [own.mean(), own.std(), own.min(), own.max()]
                rows.append([run.name, int(at[point]), len(own), *(round(float(x), 4) for x in numbers)])
    names = ("run", "episodes", "members", "mean", "deviation", "lowest", "highest")
    return {"curves.csv": plain_table(names, rows)}


def kept_weights(runs: Sequence[Run]) -> dict[str, np.ndarray]:
    """Learned tables, rows of acting states, in half precision: mean and deviation over the seeds (of each mask)."""
    arrays: dict[str, np.ndarray] = {}
    for run in (run for run in runs_of(runs, RESET, MASKED, SWITCH_RESET) if run.finished):
        content = run.arrays()
        rows = content["weights"][:, acting_states(run.spec["tags"]["depth"])]
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
        figure(f"dag-weights-{depth}", f"DAG of depth {depth}: pair weights", _WEIGHTS_CAPTION + place, depth=depth)(
            _weights
        )
        for depth, place in _WEIGHTS_PLACE.items()
    ),
    _episodes,
    _curves,
    _masked_values,
    estimators.draw,
)
TABLES = (_episodes_table, estimators.quality_table, _switches_table)
