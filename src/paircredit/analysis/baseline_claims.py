"""The paper's claim about the other methods in Key-to-Door: RGM, TVT and A2C-RR beside its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paircredit.analysis.key_to_door_claims import order_of
from paircredit.analysis.key_to_door_results import CENTRAL, LEARNED, all_curves, value_at
from paircredit.analysis.shown import CORE, title
from paircredit.analysis.statistics import mean_difference
from paircredit.analysis.verdicts import LEAST_SEEDS, Claim, Order, Status
from paircredit.runs.read import Run

HEURISTIC = ("tvt", "a2c-rr")
"""Methods that rely on a heuristic for the key."""
NEEDED = (*CORE, "rgm", *HEURISTIC)
BEFORE_RGM = ("h-pwr", "meta-pwr")


def _other_methods(runs: Sequence[Run]) -> tuple[Status, str]:
    methods = {curves.label: curves for curves in all_curves(runs) if curves.setting == CENTRAL}
    missing = [title(label) for label in NEEDED if label not in methods]
    if missing:
        return "not judged", f"There are no runs of {', '.join(missing)} at {CENTRAL.text()}."
    few = [title(label) for label in NEEDED if len(methods[label].seeds) < LEAST_SEEDS]
    if few:
        return "not judged", f"{', '.join(few)} with fewer than {LEAST_SEEDS} seeds; use more."
    frames = min(methods[label].trained for label in NEEDED)
    door = {label: value_at(methods[label], "door_reward", frames) for label in NEEDED}
    whole = {label: value_at(methods[label], "episode_return", frames) for label in NEEDED}
    third = _third(door)
    overall = mean_difference(whole["rgm"], whole["meta-pwr"])
    fast = {label: order_of(methods[label], methods["a2c"], LEARNED) for label in HEURISTIC}
    parts = [
        f"After {frames / 1e6:.2f} M frames at {CENTRAL.text()} the door rewards are "
        + ", ".join(f"{title(label)} {door[label].mean():.2f}" for label in NEEDED),
        f"RGM is {_place(door)} of {len(NEEDED)} in the door phase" + ("" if third else ", not third"),
        f"its return less Meta-PWR's is {overall.text('.2f')}",
        *(f"{title(label)} {_WORDS[order]} A2C to a door reward of {LEARNED:g}" for label, order in fast.items()),
    ]
    good = third and overall.high < 0 and "holds" not in fast.values()
    return "holds" if good else "fails", "; ".join(parts) + "."


_WORDS: dict[Order, str] = {
    "holds": "is faster than",
    "tie": "ties with",
    "contradicted": "is slower than",
    "open": "has not come, and neither has",
}


def _third(door: dict[str, np.ndarray]) -> bool:
    """Whether no method but the two that should be is clearly before RGM, and none of those clearly behind it."""
    ahead = [mean_difference(door["rgm"], door[label]).low <= 0 for label in BEFORE_RGM]
    others = [label for label in door if label not in (*BEFORE_RGM, "rgm")]
    behind = [mean_difference(door["rgm"], door[label]).high >= 0 for label in others]
    return all(ahead) and all(behind)


def _place(door: dict[str, np.ndarray]) -> int:
    return sorted(door, key=lambda label: -door[label].mean()).index("rgm") + 1


BASELINE_CLAIMS: tuple[Claim, ...] = (
    Claim(
        "K2",
        "RGM is third best in the door phase but does not perform well overall; TVT and A2C-RR do not learn fast.",
        "The Key-to-Door Experiments, learning curves",
        _other_methods,
    ),
)
