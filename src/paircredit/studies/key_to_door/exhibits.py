"""What is shown of learning in Key-to-Door: curves, times, searches and open choices."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from paircredit.results import charts
from paircredit.results.charts import draw_members, figure, grid, looks, moved, never_place, ticks
from paircredit.results.curves import Curve
from paircredit.results.exhibits import (
    METHOD,
    SEEDS,
    Measure,
    Table,
    column,
    exhibit,
    interval,
    plain_table,
    table,
    title,
)
from paircredit.results.intervals import Interval, mean_interval, median_of_times
from paircredit.runs.read import Run
from paircredit.studies.key_to_door import measures, weights
from paircredit.studies.key_to_door.measures import (
    LEARNED,
    OPTIMAL,
    QUANTITIES,
    VARIANTS,
    all_curves,
    frames_to,
    method_labels,
)
from paircredit.studies.key_to_door.runs import CENTRAL, SEARCH, SEARCHES, SWITCHES, Setting

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

AXIS_LABELS = {"episode_return": "episode return", "door_reward": "door reward", "apple_reward": "apple reward"}
"""What can be drawn."""
MOST_POINTS = 80
"""Per curve; each is the mean over a part of training."""
DIGEST_POINTS = 125
BEST = "most that can be expected"
GIVEN_FRAMES = (1e6, 2.5e6, 5e6, 1e7, 2e7)
"""The table of switches has the door reward after this many frames, where somebody trained that long."""
DEFAULT = "default"
_BESIDE, _BETWEEN = 1.0, 0.9
"""Distance between methods of a setting, and more of it between settings."""
_MARKERS = ("o", "s", "^", "D")
_ASIDE = 0.15
"""Distance between learning rates in the figure of the search; values of λ are 1 apart."""


@figure("key-to-door-central", "Key-to-Door: learning curves at μ = 5, σ² = 25")
def _central(runs: Sequence[Run]) -> Figure | None:
    """Episode return on the left, door reward on the right.

    Episode return and reward of the door phase against frames: lines are means over seeds, bands are 95 % bootstrap
    intervals of the mean, and dashed lines are the most that can be expected. This is the setting on which the paper
    tunes. Its Figure 5 shows these curves for three settings: H-PWR is best, Meta-PWR the fastest after it in the door
    phase, and Meta-PWTD slower, but at the optimum in the end.
    """
    shown = [curve for curve in all_curves(runs) if curve.place == CENTRAL]
    if not shown:
        return None
    drawn, panels = grid(2, 2, (9.6, 4.3))
    for axes, quantity in zip(panels, ("episode_return", "door_reward"), strict=True):
        _panel(axes, runs, shown, quantity)
        axes.set_title(AXIS_LABELS[quantity])
        axes.set_xlabel("frames (millions)")
    charts.legend_above(drawn, last=BEST)
    return drawn


def _curves(runs: Sequence[Run], quantity: str = "episode_return", *, slips: bool = False) -> Figure | None:
    """A panel per setting (with random actions or without): rows by the apples' mean, columns by their variance."""
    shown = [curve for curve in all_curves(runs) if (curve.place.slip > 0) == slips]
    if not shown:
        return None
    settings = sorted({curve.place for curve in shown})
    arranged = arrange(settings)
    rows, columns = len(arranged), len(arranged[0])
    size = (6.4, 4.4) if len(settings) == 1 else (max(3.15 * columns + 0.5, 5.6), 2.45 * rows + 0.95)
    drawn, panels = grid(rows * columns, columns, size, sharex=True, sharey="row")
    several_slips = len({setting.slip for setting in settings}) > 1
    for axes, (row, column_) in zip(panels, np.ndindex(rows, columns), strict=True):
        setting = arranged[row][column_]
        if setting is None:
            axes.set_visible(False)
            continue
        _panel(axes, runs, [curve for curve in shown if curve.place == setting], quantity)
        axes.set_title(setting.text() if several_slips else setting._replace(slip=0.0).text(), fontsize=11)
        axes.tick_params(
            labelbottom=row == rows - 1 or arranged[row + 1][column_] is None,
            labelleft=column_ == 0 or arranged[row][column_ - 1] is None,
        )
    charts.finish(drawn, "frames (millions)", AXIS_LABELS[quantity], last=BEST)
    return drawn


def arrange(settings: Sequence[Setting]) -> list[list[Setting | None]]:
    """Settings in rows of equal slips and means; in columns of equal variances, if the rows have these in common."""
    rows: dict[tuple[float, float], list[Setting]] = {}
    for setting in settings:
        rows.setdefault((setting.slip, setting.mean), []).append(setting)
    longest = max(len(row) for row in rows.values())
    variances = sorted({setting.variance for setting in settings})
    if len(variances) == longest:
        return [[next((s for s in row if s.variance == v), None) for v in variances] for row in rows.values()]
    return [[*row, *[None] * (longest - len(row))] for row in rows.values()]


def _panel(axes: Axes, runs: Sequence[Run], shown: Sequence[Curve], quantity: str) -> None:
    """Mean and band of every method, and a line at what is best."""
    best = measures.best_value(shown[0], quantity)
    charts.dashed(axes, best, BEST)  # first: there is room above it
    own = [charts.Line(curve.label, *thinned(curve, quantity)) for curve in shown]
    charts.lines(axes, charts.Panel("", own), looks(method_labels(runs)))
    if quantity == "door_reward":
        axes.set_ylim(-0.3, 1.06 * best)
    axes.set_xlim(left=0)
    ticks(axes.yaxis, 5, "{x:g}")
    ticks(axes.xaxis, 5, "{x:g}")


def thinned(curve: Curve, quantity: str, points: int = MOST_POINTS) -> tuple[np.ndarray, np.ndarray]:
    """Frames in millions [P] and values [N, P], each the mean over neighbouring points, so that few are left."""
    values = curve.values[quantity]
    count = values.shape[1]
    begins = np.unique(np.linspace(0, count, min(points, count) + 1).astype(int)[:-1])
    sizes = np.diff(np.append(begins, count))
    frames = np.add.reduceat(curve.edges["frames"][:count], begins) / sizes
    return frames / 1e6, np.add.reduceat(values, begins, axis=1) / sizes


@figure("key-to-door-frames", "Key-to-Door: frames until learned")
def _frames(runs: Sequence[Run]) -> Figure | None:
    """A panel per door reward, with a line per setting and method.

    For every setting and method the median number of frames until the mean door reward of the last 320 episodes is 9
    (left) or 9.5 (right), of 10 at most, with a 95 % bootstrap interval as a bar and each seed as a dot; left is good.
    Seeds that never get there stand on the dotted line. The paper has curves and no such numbers; from its text one
    expects H-PWR on the left and Meta-PWR next in every setting.
    """
    found = all_curves(runs)
    if not found:
        return None
    labels = method_labels(runs)
    settings = sorted({curve.place for curve in found}, key=lambda s: (s.slip, s.mean, s.variance))
    block = len(labels) * _BESIDE + _BETWEEN
    places = [settings.index(curve.place) * block + labels.index(curve.label) * _BESIDE for curve in found]
    drawn, panels = grid(2, 2, (9.6, max(3.4, 1.2 + 0.135 * block * len(settings))), sharey=True)
    for axes, threshold in zip(panels, (LEARNED, OPTIMAL), strict=True):
        _draw_times(axes, runs, places, found, threshold)
        axes.set_title(f"door reward {threshold:g}", pad=16)
        axes.set_xlabel("frames (millions)")
        axes.grid(axis="x")
        axes.tick_params(axis="y", length=0)
        for index in range(0, len(settings), 2):
            top = index * block - 0.5 - _BETWEEN / 2
            axes.axhspan(top, top + block, color="#f5f5f5", zorder=0)
    middle = (len(labels) - 1) / 2 * _BESIDE
    names = ["\n".join(setting.text().rsplit(", ", int(setting.slip > 0))) for setting in settings]  # slips below
    panels[0].set_yticks([index * block + middle for index in range(len(settings))], names)
    panels[0].set_ylim(len(settings) * block - 0.5 - _BETWEEN / 2, -0.5 - _BETWEEN / 2)
    charts.legend_above(drawn)
    return drawn


def _draw_times(
    axes: Axes, runs: Sequence[Run], places: Sequence[float], found: Sequence[Curve], threshold: float
) -> None:
    """Frames to a door reward, one line for each curve; those that never get there stand after the longest training."""
    look = looks(method_labels(runs))
    times = [frames_to(curve, threshold) / 1e6 for curve in found]
    every = np.concatenate(times).tolist()
    never, shown = never_place([curve.trained / 1e6 for curve in found], every)
    for curve, place, own in zip(found, places, times, strict=True):
        members = np.where(np.isfinite(own), own, never)
        draw_members(axes, place, members, moved(median_of_times(own), never), look[curve.label], title(curve.label))
    charts.logarithmic(axes, every, shown)


def _times(threshold: float) -> list[Measure]:
    """How many seeds reach a door reward, and after how many frames."""
    door = f"{threshold:g}"
    return [
        column(f"reached_{door}", f"seeds at {door}", lambda own: int(np.isfinite(frames_to(own, threshold)).sum())),
        interval(
            f"frames_to_{door}", f"frames to {door}", lambda own: median_of_times(frames_to(own, threshold)), ",.0f"
        ),
    ]


_TRAINED = column("trained_frames", "frames trained", lambda own: own.trained, ",.0f")


def _mean_final(quantity: str) -> Callable[[Curve], Interval]:
    return lambda own: mean_interval(measures.final_values(own, quantity))


def _final(quantity: str, name: str) -> Measure:
    """The mean of a quantity at the end, without an interval."""
    return column(name.replace(" ", "_"), name, lambda own: float(measures.final_values(own, quantity).mean()), ".2f")


@exhibit("key-to-door-frames", "Key-to-Door: frames to a door reward of 9 and 9.5, and final values")
def _frames_table(runs: Sequence[Run]) -> Table | None:
    """A row per setting and method.

    Medians over seeds of the frames after which the mean door reward of the last 320 episodes is at 9 and 9.5, with 95
    % bootstrap intervals; ∞ means not within training. Final values are means over the last tenth of training; the best
    is the most that can be expected. The last columns compare at equal frames: those that every method of the setting
    trained, means over the last tenth of these.
    """
    found = all_curves(runs)

    def equal_frames(curve: Curve) -> float:
        return min(other.trained for other in found if other.place == curve.place)

    def then(quantity: str) -> Callable[[Curve], Interval]:
        return lambda own: mean_interval(measures.value_at(own, quantity, equal_frames(own)))

    return table(
        found,
        column("mean", "μ", lambda own: own.place.mean, "g"),
        column("variance", "σ²", lambda own: own.place.variance, "g"),
        column("slip", "random actions", lambda own: own.place.slip, "g"),
        METHOD,
        SEEDS,
        _TRAINED,
        *_times(LEARNED),
        *_times(OPTIMAL),
        _final("door_reward", "final door reward"),
        interval("final_return", "final return", _mean_final("episode_return"), ".2f"),
        column("best_return", "best", lambda own: measures.best_value(own, "episode_return"), ".2f"),
        column("equal_frames", "frames all trained", equal_frames, ",.0f"),
        interval("equal_door_reward", "door reward then", then("door_reward"), ".2f"),
        interval("equal_return", "return then", then("episode_return"), ".2f"),
    )


@figure("key-to-door-search", "Key-to-Door: A2C with other λ and learning rates")
def _search(runs: Sequence[Run]) -> Figure | None:
    """Over λ, a line per learning rate: median frames to a door reward of 9, and the final door reward.

    Left: median frames until the mean door reward of the last 320 episodes is 9; low is good, and hollow markers never
    get there. Right: the mean door reward over the last tenth of training. Bars are 95 % bootstrap intervals. The paper
    compares with the best fixed λ of such a search, and does not show it.
    """
    found = _of_one_setting(runs, SEARCH)
    if not found:
        return None
    lambdas, rates = (sorted({curve.variant[place] for curve in found}) for place in (0, 1))
    drawn, (left, right) = grid(2, 2, (9.8, 4.4))
    medians = {curve.variant: median_of_times(frames_to(curve, LEARNED) / 1e6) for curve in found}
    finals = {curve.variant: mean_interval(measures.final_values(curve, "door_reward")) for curve in found}
    ends = [end for interval in medians.values() for end in interval]
    never, shown = never_place([curve.trained / 1e6 for curve in found], ends)
    charts.logarithmic(left, ends, shown, upright=True)
    for number, rate in enumerate(rates):
        aside = _ASIDE * (number - (len(rates) - 1) / 2)
        for axes, intervals in ((left, medians), (right, finals)):
            own = {variant[0]: interval for variant, interval in intervals.items() if variant[1] == rate}
            places = [lambdas.index(value) + aside for value in own]
            _rate(axes, places, list(own.values()), never, number / max(len(rates) - 1, 1), f"{rate:g}")
    for axes, name in ((left, f"frames to a door reward of {LEARNED:g} (millions)"), (right, "final door reward")):
        axes.set_xticks(range(len(lambdas)), [f"{value:g}" for value in lambdas])
        axes.set_xlabel("λ")
        axes.grid(axis="y")
        axes.set_title(name, fontsize=11)
    right.set_ylim(-0.3, 10.3)
    drawn.legend(*left.get_legend_handles_labels(), title="learning rate", loc="outside right center")
    return drawn


def _rate(axes: Axes, places: list[float], intervals: list[Interval], never: float, shade: float, name: str) -> None:
    """Bars for intervals, markers for estimates, joined where they exist; hollow markers where there is none."""
    from matplotlib import colormaps

    colour = colormaps["viridis"](0.85 * shade)
    marker = _MARKERS[round(shade * (len(_MARKERS) - 1))]
    estimates = np.array([interval.estimate for interval in intervals])
    reached = np.isfinite(estimates)
    ends = [moved(interval, never) for interval in intervals]
    axes.vlines(places, [end.low for end in ends], [end.high for end in ends], color=colour, alpha=0.4, linewidth=4)
    style: dict[str, Any] = {"marker": marker, "color": colour, "markersize": 6}
    axes.plot(places, np.where(reached, estimates, np.nan), linewidth=1.3, label=name, **style)
    late = [place for place, arrived in zip(places, reached, strict=True) if not arrived]
    axes.plot(late, [never] * len(late), linestyle="", markerfacecolor="white", zorder=4, **style)


@exhibit("key-to-door-search", "Key-to-Door: A2C with other λ and learning rates")
def _search_table(runs: Sequence[Run]) -> Table | None:
    """A row per learning rate and λ.

    Medians and 95 % bootstrap intervals over seeds, as in the table before; the final door reward is a mean.
    """
    return table(
        sorted(_of_one_setting(runs, SEARCH), key=lambda own: (own.variant[1], own.variant[0])),
        column("learning_rate", "learning rate", lambda own: own.variant[1], "g"),
        column("lambda", "λ", lambda own: own.variant[0], "g"),
        SEEDS,
        *_times(LEARNED),
        interval("final_door_reward", "final door reward", _mean_final("door_reward"), ".2f"),
    )


def _of_one_setting(runs: Sequence[Run], role: str) -> list[Curve]:
    found = all_curves(runs, role)
    setting = measures.pick_setting([curve.place for curve in found])
    return [curve for curve in found if curve.place == setting]


def _switches(runs: Sequence[Run], role: str = SWITCHES) -> Figure | None:
    """Frames to a door reward of 9 on the left; on the right the door reward at the end of the shortest training."""
    found = _tried(runs, role)
    if not found:
        return None
    look = looks(method_labels(runs))
    drawn, (left, right) = grid(2, 2, (9.6, 1.5 + 0.36 * len(found)), sharey=True)
    common = min(curve.trained for curve in found)
    _draw_times(left, runs, np.arange(len(found), dtype=float).tolist(), found, LEARNED)
    for number, curve in enumerate(found):
        rewards = measures.door_reward_at(curve, common)
        if rewards is not None:
            draw_members(right, float(number), rewards, mean_interval(rewards), look[curve.label], title(curve.label))
    left.set_xlabel(f"frames to a door reward of {LEARNED:g} (millions)")
    right.set_xlabel(f"door reward after {common / 1e6:.3g} M frames")
    right.set_xlim(-0.3, 10.3)
    left.set_yticks(range(len(found)), [curve.variant[0] for curve in found])
    left.set_ylim(len(found) - 0.5, -0.5)
    for axes in (left, right):
        axes.grid(axis="both")
        axes.tick_params(axis="y", length=0)
    charts.legend_above(drawn)
    return drawn


def _switches_table(runs: Sequence[Run], role: str = SWITCHES) -> Table | None:
    """A row per method and setting."""
    found = _tried(runs, role)
    longest = max((curve.trained for curve in found), default=0)

    def at(frames: float) -> Measure:
        def mean(curve: Curve) -> float | None:
            rewards = measures.door_reward_at(curve, frames)
            return None if rewards is None else float(rewards.mean())

        return column(f"door_at_{frames:.0f}", f"door reward at {frames / 1e6:g} M", mean, ".2f")

    return table(
        found,
        column(VARIANTS[role][0], VARIANTS[role][0], lambda own: str(own.variant[0])),
        METHOD,
        SEEDS,
        _TRAINED,
        *_times(LEARNED),
        *(at(frames) for frames in GIVEN_FRAMES if frames <= longest),
        _final("door_reward", "final door reward"),
        _final("episode_return", "final return"),
    )


def _tried(runs: Sequence[Run], role: str) -> list[Curve]:
    """By method; of each, what everything is compared with first."""
    order = method_labels(runs)
    own = _of_one_setting(runs, role)
    return sorted(own, key=lambda c: (order.index(c.label), c.variant[0] != DEFAULT, c.variant[0]))


def digest(runs: Sequence[Run]) -> dict[str, Table | None]:
    """Curves, members and learned weights."""
    who = ["role", "method", *Setting._fields, "variant"]
    columns = [f"{name} {part}" for name in QUANTITIES for part in ("mean", "deviation")]
    times = [f"frames to {door:g}" for door in (LEARNED, OPTIMAL)]
    found = [
        ([role, curve.label, *curve.place, " ".join(str(part) for part in curve.variant)], curve)
        for role in VARIANTS
        for curve in all_curves(runs, role)
    ]
    return {
        "key-to-door-curves.csv": plain_table(
            [*who, "seeds", "frames", *columns], ([*names, *row] for names, curve in found for row in _points(curve))
        ),
        "key-to-door-members.csv": plain_table(
            [*who, "seed", *times, *QUANTITIES], ([*names, *row] for names, curve in found for row in _members(curve))
        ),
        "key-to-door-weights.csv": weights.kept_blocks(runs),
    }


def _points(curve: Curve) -> list[list[Any]]:
    """All quantities at some hundred points, mean and deviation over seeds."""
    rows: list[list[Any]] = []
    edges = np.unique(np.linspace(0, curve.values["door_reward"].shape[1], DIGEST_POINTS + 1).round().astype(int))
    for begin, end in itertools.pairwise(edges):
        means = [curve.values[name][:, begin:end].mean(axis=1) for name in QUANTITIES]
        numbers = [round(float(x), 4) for values in means for x in (values.mean(), values.std())]
        rows.append([len(curve.seeds), int(curve.edges["frames"][begin]), *numbers])
    return rows


def _members(curve: Curve) -> list[list[Any]]:
    """Of every seed the frames to a door reward, empty where it was not reached, and final values."""
    times = [["" if np.isinf(t) else round(float(t)) for t in frames_to(curve, door)] for door in (LEARNED, OPTIMAL)]
    finals = [measures.final_values(curve, name).round(4).tolist() for name in QUANTITIES]
    return [list(row) for row in zip(map(int, curve.seeds), *times, *finals, strict=True)]


_SHOWN = {
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

FIGURES = (
    _central,
    *(
        figure(
            f"key-to-door-{name}{'-slip' if slips else ''}",
            f"Key-to-Door: {words}{', 10 % random actions' if slips else ''}",
            ("Each action is replaced by a random one with probability 0.1. " if slips else "")
            + _CURVES_CAPTION
            + _CURVES_PAPER[name],
            quantity=quantity,
            slips=slips,
        )(_curves)
        for slips in (False, True)
        for name, (quantity, words) in _SHOWN.items()
    ),
    _frames,
    *weights.FIGURES,
    _search,
    figure(
        "key-to-door-switches",
        "Key-to-Door: what the paper leaves open, tried both ways",
        "Each line changes one switch of a method; the first is the default. Left: median frames until the mean door "
        "reward of the last 320 episodes is 9, with 95 % bootstrap intervals and a dot per seed. Right: this mean "
        "itself, at the end of the shortest training, averaged over seeds. The paper does not state these choices.",
    )(_switches),
    figure(
        "key-to-door-searches",
        "Key-to-Door: the other methods' hyperparameters",
        "All combinations that the paper's appendix searched for each method, drawn as in the figure before. The paper "
        "names the best and does not show the search.",
        role=SEARCHES,
    )(_switches),
)
TABLES = (
    _frames_table,
    _search_table,
    exhibit(
        "key-to-door-switches",
        "Key-to-Door: what the paper leaves open, tried both ways",
        "Each row changes one switch. Frames to a door reward of 9 are medians over seeds with 95 % bootstrap "
        "intervals; door rewards at given frames are means over the last 320 episodes and over seeds.",
    )(_switches_table),
    exhibit(
        "key-to-door-searches",
        "Key-to-Door: the other methods' hyperparameters",
        "A row per combination; columns as in the table before.",
        role=SEARCHES,
    )(_switches_table),
)
