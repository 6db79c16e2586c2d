"""Weights that were learned in Key-to-Door: what claims want to know of them, and pictures (Figure 4 of the paper).

Advantages are standardised, so that a factor on all weights changes nothing: every picture has the colours of its
weights as parts of its own largest one, which is written into it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from paircredit.envs.key_to_door import KeyToDoorConfig
from paircredit.results.charts import figure
from paircredit.results.curves import runs_of, spread
from paircredit.results.exhibits import LEAST_SEEDS, OF_ERRORS, Status, Table, claim, plain_table, title
from paircredit.results.intervals import mean_interval
from paircredit.results.pictures import PAIR_AXES, PairAxes, Picture, pictures
from paircredit.runs.read import Run
from paircredit.studies.key_to_door.measures import method_labels, pick_setting
from paircredit.studies.key_to_door.runs import METHODS, Setting
from paircredit.weights import handcrafted_weights

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_SNAPSHOTS = 10
NEAR, FAR = 5, 30
"""Lags inside the apple phase: at most the one is near, at least the other is far."""


class Phases(NamedTuple):
    """Steps of the three phases of an episode."""

    key: int = 15
    apple: int = 90
    door: int = 15

    @property
    def door_start(self) -> int:
        """Steps before the door phase."""
        return self.key + self.apple

    @property
    def steps(self) -> int:
        """Of an episode."""
        return self.key + self.apple + self.door


def phases(settings: Mapping[str, Any]) -> Phases:
    """The lengths of the phases with these settings of the environment."""
    lengths = Phases()._asdict()
    return Phases(**{name: int(settings.get(f"{name}_steps", steps)) for name, steps in lengths.items()})


def pair_axes(lengths: Phases) -> PairAxes:
    """How pairs of steps are shown: with lines between the phases."""
    return PairAxes(edges=(0, lengths.key, lengths.door_start, lengths.steps), names=("key", "apples", "door"))


PAIR_AXES["key-to-door"] = lambda settings, shape, _: (  # if weights are over the steps of such an episode
    pair_axes(phases(settings)) if shape == (phases(settings).steps,) * 2 else None
)


class LearnedWeights(NamedTuple):
    """Weights that a method learned in one setting: [N, T, T] at the end, perhaps [S, N, T, T] on the way.

    Row t is for the action at t, column k for what arrives with transition k; below the diagonal may be anything.
    """

    label: str
    setting: Setting
    phases: Phases
    weights: np.ndarray
    snapshots: np.ndarray | None
    snapshot_frames: np.ndarray | None


def learned_weights(runs: Sequence[Run]) -> list[LearnedWeights]:
    """The learned weights of every method and setting, seeds of several runs together (snapshots: of the first)."""
    found: dict[tuple[Setting, str], LearnedWeights] = {}
    for run in runs_of(runs, METHODS):
        if not run.finished or "arrays.npz" not in run.manifest["files"]:
            continue
        arrays = run.arrays()
        if "weights" not in arrays:
            continue
        labels = zip(*(arrays[f"label_{name}"].tolist() for name in Setting._fields), strict=True)
        settings = [Setting.of(values) for values in labels]
        per_update = run.columns["frames"].max() / max(run.columns["update"].max(), 1) if "snapshots" in arrays else 0
        for setting in dict.fromkeys(settings):
            chosen = np.array([other == setting for other in settings])
            weights, label = np.asarray(arrays["weights"][chosen], dtype=float), run.spec["tags"]["label"]
            if first := found.get((setting, label)):
                found[setting, label] = first._replace(weights=np.concatenate([first.weights, weights]))
                continue
            course = (
                (arrays["snapshots"][:, chosen], arrays["snapshot_updates"] * per_update)
                if "snapshots" in arrays
                else (None, None)
            )
            lengths = phases(run.spec.get("env_settings", {}))
            found[setting, label] = LearnedWeights(label, setting, lengths, weights, *course)
    order = method_labels(runs)
    return sorted(found.values(), key=lambda learned: (learned.setting, order.index(learned.label)))


def handcrafted(lengths: Phases) -> np.ndarray:
    """The handcrafted weights of an episode with these phases, [T, T]."""
    env = KeyToDoorConfig(key_steps=lengths.key, apple_steps=lengths.apple, door_steps=lengths.door).build()
    return np.asarray(handcrafted_weights(env).pairs, dtype=float)


def blocks(lengths: Phases) -> dict[str, np.ndarray]:
    """Which pairs of an action and a transition are of which kind; boolean matrices [T, T]."""
    action, paid = np.indices((lengths.steps, lengths.steps))
    lag = paid - action

    def phase(time: np.ndarray) -> np.ndarray:
        return (time >= lengths.key).astype(int) + (time >= lengths.door_start)

    key_rows, apple_rows, door_rows = (phase(action) == number for number in range(3))
    apples, doors = phase(paid) == 1, phase(paid) == 2
    return {
        "key → apple": key_rows & apples,
        "key → door": key_rows & doors,
        "apple → apple, near": apple_rows & apples & (lag >= 0) & (lag <= NEAR),
        "apple → apple, far": apple_rows & apples & (lag >= FAR),
        "apple → door": apple_rows & doors,
        "door → door": door_rows & doors & (lag >= 0),
    }


def block_means(weights: np.ndarray, lengths: Phases) -> dict[str, np.ndarray]:
    """The mean weight of every block, for each matrix of [N, T, T]; nan for a block that short phases leave empty."""
    return {
        name: weights[:, chosen].mean(axis=1) if chosen.any() else np.full(len(weights), np.nan)
        for name, chosen in blocks(lengths).items()
    }


def likeness(weights: np.ndarray, lengths: Phases) -> np.ndarray:
    """The correlation of each matrix of [N, T, T] with the handcrafted one, over pairs k ≥ t; 0 where all are equal."""
    upper = np.triu(np.ones((lengths.steps, lengths.steps), dtype=bool))
    wanted = handcrafted(lengths)[upper]
    found = [matrix[upper] for matrix in weights]
    return np.array([np.corrcoef(own, wanted)[0, 1] if np.ptp(own) > 0 else 0.0 for own in found])


@claim(
    "K4",
    "The weights that Meta-PWR learns resemble the handcrafted ones: actions of the key phase are credited with "
    "the door and not with apples, and inside the apple phase credit is discounted steeply.",
    "The Key-to-Door Experiments, weight visualisation",
)
def _weights_resemble(runs: Sequence[Run]) -> tuple[Status, str]:
    learned = {entry.setting: entry for entry in learned_weights(runs) if entry.label == "meta-pwr"}
    setting = pick_setting(list(learned))
    if setting is None:
        return "not judged", "There are no runs with learned weights of Meta-PWR."
    weights, lengths = learned[setting].weights, learned[setting].phases
    if len(weights) < LEAST_SEEDS:
        return "not judged", f"Meta-PWR has fewer than {LEAST_SEEDS} seeds at {setting.text()}; use more."
    means, by_hand = block_means(weights, lengths), block_means(handcrafted(lengths)[None], lengths)
    far = means["apple → apple, far"]
    if np.isnan(far).any():
        return "not judged", f"The apple phase has {lengths.apple} steps; more than {FAR} are needed to see a discount."
    key = mean_interval(means["key → door"] - means["key → apple"])
    apples = mean_interval(means["apple → apple, near"] - far)
    text = (
        f"At {setting.text()}, {len(weights)} seeds: key rows weigh the door {key.text('.3f')} more than apples "
        f"({means['key → door'].mean():.2f} against {means['key → apple'].mean():.2f}); in the apple phase lags up to "
        f"{NEAR} weigh {apples.text('.3f')} more than lags from {FAR} "
        f"({means['apple → apple, near'].mean():.2f} against {far.mean():.2f}). Not judged: apple rows weigh the door "
        f"{means['apple → door'].mean():.2f} (handcrafted {by_hand['apple → door'].mean():.2f}), door rows "
        f"{means['door → door'].mean():.2f} (handcrafted {by_hand['door → door'].mean():.2f}); correlation with the "
        f"handcrafted weights over all pairs {mean_interval(likeness(weights, lengths)).text('.2f')}."
    )
    return "holds" if key.low > 0 and apples.low > 0 else "fails", text


@figure("key-to-door-weights", "Key-to-Door: pair weights")
def _weights(runs: Sequence[Run]) -> Figure | None:
    """Pictures side by side: handcrafted weights, and the mean over seeds of those that each method learned.

    Each cell is the weight with which what arrives at the step of the column counts for the action at the step of the
    row; lines separate the key, apple and door phases. Learned weights are averages over the episodes of the last batch
    and over seeds. Figure 4 of the paper shows that the handcrafted and the Meta-PWR weights look alike: actions of the
    key phase (top rows) are credited with the door (right) and not with apples, and inside the apple phase credit falls
    steeply with the delay.
    """
    found = _of_one_setting(runs)
    if not found:
        return None
    axes = pair_axes(found[0].phases)
    panels = [Picture("Handcrafted", handcrafted(found[0].phases), axes, "step of the reward", "step of the action")]
    for entry in found:
        weighed = "TD error" if entry.label in OF_ERRORS else "reward"
        name = f"{title(entry.label)}, {_seeds(entry.weights)}"
        panels.append(Picture(name, entry.weights.mean(axis=0), axes, f"step of the {weighed}"))
    drawn = pictures(panels, len(panels), lambda columns, _: (3.5 * columns + 0.9, 4.15), pad=20)
    drawn.suptitle(f"learned at {found[0].setting.text()}", fontsize=11, color="#555555")
    return drawn


@figure("key-to-door-weights-over-time", "Key-to-Door: Meta-PWR's weights in the course of training")
def _over_time(runs: Sequence[Run], label: str = "meta-pwr") -> Figure | None:
    """Small pictures of one method's weights in the course of training, means over seeds.

    The same picture at several moments of training, means over episodes and seeds. The paper shows the end only.
    """
    found = [entry for entry in _of_one_setting(runs) if entry.label == label and entry.snapshots is not None]
    if not found:
        return None
    entry, snapshots, frames = found[0], found[0].snapshots, found[0].snapshot_frames
    assert snapshots is not None and frames is not None
    axes = pair_axes(entry.phases)
    panels = [
        Picture(f"{frames[index] / 1e6:.3g} M frames", snapshots[index].astype(float).mean(axis=0), axes)
        for index in spread(len(snapshots), _MOST_SNAPSHOTS)
    ]
    drawn = pictures(
        panels, 5, lambda columns, rows: (max(2.15 * columns + 0.9, 5.4), 2.4 * rows + 0.5), small=True, title_size=11
    )
    name = f"{title(label)} at {entry.setting.text()}, {_seeds(entry.weights)}"
    drawn.suptitle(name, fontsize=11, color="#555555")
    return drawn


def _of_one_setting(runs: Sequence[Run]) -> list[LearnedWeights]:
    found = learned_weights(runs)
    setting = pick_setting([entry.setting for entry in found])
    return [entry for entry in found if entry.setting == setting]


def _seeds(weights: np.ndarray) -> str:
    return "one seed" if len(weights) == 1 else f"mean of {len(weights)} seeds"


def kept_weights(runs: Sequence[Run]) -> dict[str, np.ndarray]:
    """Learned weights over pairs of times in half precision: mean and deviation over seeds, and the mean's course."""
    arrays: dict[str, np.ndarray] = {}
    for learned in learned_weights(runs):
        name = "-".join(["key-to-door", learned.label, *(f"{number:g}" for number in learned.setting)])
        arrays[f"{name}-mean"] = learned.weights.mean(axis=0).astype(np.float16)
        arrays[f"{name}-deviation"] = learned.weights.std(axis=0).astype(np.float16)
        if learned.snapshots is not None and learned.snapshot_frames is not None:
            arrays[f"{name}-course"] = learned.snapshots.astype(np.float32).mean(axis=1).astype(np.float16)
            arrays[f"{name}-course-frames"] = learned.snapshot_frames
    return arrays


def kept_blocks(runs: Sequence[Run]) -> Table | None:
    """Of every matrix of learned weights the mean of each block, and its correlation with the handcrafted one."""
    rows: list[list[Any]] = []
    for learned in learned_weights(runs):
        numbers = [*block_means(learned.weights, learned.phases).values(), likeness(learned.weights, learned.phases)]
        for index, own in enumerate(zip(*(values.round(5).tolist() for values in numbers), strict=True)):
            rows.append([learned.label, *learned.setting, index, *own])
    return plain_table(["method", *Setting._fields, "matrix", *blocks(Phases()), "correlation"], rows)


FIGURES = (_weights, _over_time)
CLAIMS = (_weights_resemble,)
