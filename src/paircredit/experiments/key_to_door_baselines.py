"""The other methods in Key-to-Door, and the searches of the paper's appendix for each of them, as data."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from paircredit.experiments.key_to_door import CENTRAL, SHORTENED, training, updates_for
from paircredit.experiments.spec import Experiment, pick_scale

BASELINES = ("meta-lambda", "rgm", "a2c-rr", "tvt", "synthetic-returns")
FRAMES = 10_080_000
"""Environment steps per member at the largest scale: 5,250 updates of 16 episodes."""
FEW_FRAMES = 960_000
"""Of a shortened episode with small networks: 3,000 updates, for a laptop."""

Grid = Mapping[str, Sequence[float]]
"""Values of settings; all combinations are tried."""
SEARCHES: Mapping[str, Grid] = {
    "meta-lambda": {"outer.learning_rate": (1e-4, 2e-5, 5e-6, 1e-6)},
    "rgm": {"outer.learning_rate": (1e-4, 1e-5, 1e-6, 1e-7)},
    "tvt": {"threshold": (1.0, 2.0), "inner.learning_rate": (1e-3, 2e-4, 5e-5, 1e-5)},
    "a2c-rr": {
        "inner.discount": (0.92, 1.0),
        "lambda_": (1.0, 0.95, 0.5),
        "prediction.auxiliary": (0.0, 0.5),
        "mix": (0.5, 1.0),
    },
}
"""What the paper searched for each method (KtD appendix)."""
NAMES = {
    "outer.learning_rate": "outer learning rate",
    "inner.learning_rate": "learning rate",
    "threshold": "threshold",
    "inner.discount": "γ",
    "lambda_": "λ",
    "prediction.auxiliary": "auxiliary",
    "mix": "mix",
}


def baselines(scale: str) -> Experiment:
    """The methods that the paper compares with, and Synthetic Returns, on the setting that it tuned on."""

    def build(name: str, frames: int, seeds: int, **more: Any) -> Experiment:
        runs = [
            training(
                f"baseline-{method}",
                method,
                [CENTRAL],
                updates_for(frames, more.get("env_settings", {})),
                seeds,
                **more,
            )
            for method in BASELINES
        ]
        return Experiment("key-to-door-baselines", name, tuple(runs))

    return pick_scale(
        "key-to-door-baselines",
        scale,
        {
            "smoke": lambda: build("smoke", 2 * 320, 1, preset="small", env_settings=SHORTENED),
            "short": lambda: build("short", FEW_FRAMES, 2, preset="small", env_settings=SHORTENED),
            "paper": lambda: build("paper", FRAMES, 5),
        },
    )


def combinations(grid: Grid) -> list[dict[str, Any]]:
    """A variant for every combination of a grid, labelled in words."""
    variants = []
    for values in itertools.product(*grid.values()):
        settings = dict(zip(grid, values, strict=True))
        text = ", ".join(f"{NAMES[name]} {value:g}" for name, value in settings.items())
        variants.append({"labels": {"tried": text}, "method_settings": settings})
    return variants


def searches(scale: str) -> Experiment:
    """All searches of the appendix but A2C's, which is an experiment of its own."""

    def build(name: str, frames: int, seeds: int, fewest: bool = False, **more: Any) -> Experiment:
        runs = [
            training(
                f"searches-{method}",
                method,
                [CENTRAL],
                updates_for(frames, more.get("env_settings", {})),
                seeds,
                role="key-to-door-searches",
                variants=combinations(grid)[: 2 if fewest else None],
                **more,
            )
            for method, grid in SEARCHES.items()
        ]
        return Experiment("key-to-door-searches", name, tuple(runs))

    return pick_scale(
        "key-to-door-searches",
        scale,
        {
            "smoke": lambda: build("smoke", 2 * 320, 1, fewest=True, preset="small", env_settings=SHORTENED),
            "short": lambda: build("short", FEW_FRAMES, 1, preset="small", env_settings=SHORTENED),
            "paper": lambda: build("paper", 50_000_000, 3),
        },
    )
