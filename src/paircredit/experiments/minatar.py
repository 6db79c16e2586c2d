"""The five games of MinAtar, Atari in small: one run per method and game, all seeds in one program."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from paircredit.envs.minatar import GAMES, MinAtarConfig
from paircredit.experiments.spec import Experiment, TrainingSpec, pick_scale
from paircredit.methods.registry import make_method
from paircredit.methods.settings import replace_dotted

METHODS = ("a2c", "meta-pwtd")
BASELINES = ("a2c-rr",)
FRAMES = 10_000_000
"""Steps of every member (our choice: the paper does not have these games)."""
SEEDS = 10
"""Our choice."""
TINY = {"network.filters": (4, 4), "network.picture_width": 8, "network.trunk": (8, 8), "network.pair_width": 8}


def training(
    method: str,
    game: str,
    frames: int,
    seeds: int,
    *,
    preset: str = "default",
    method_settings: Mapping[str, Any] | None = None,
) -> TrainingSpec:
    """One method on one game.

    Args:
        method: name of the method.
        game: name of the game.
        frames: of every member, rounded up to whole updates; a step is a frame here.
        seeds: members.
        preset: of the method.
        method_settings: fields of the method to replace.
    """
    env, settings = f"minatar/{game}", dict(method_settings or {})
    made: Any = replace_dotted(make_method(method, preset, env), settings, method)
    return TrainingSpec(
        name=f"{game}-{method}",
        env=env,
        method=method,
        updates=-(-frames // (made.episodes * MinAtarConfig().steps)),
        seeds=tuple(range(seeds)),
        method_settings=settings,
        preset=preset,
        tags={"role": "minatar", "label": method, "game": game},
    )


@dataclasses.dataclass(frozen=True)
class MinAtarScale:
    """How much of it.

    Attributes:
        games: which of them.
        frames: of every member.
        seeds: members of every run.
        preset: of the methods.
        method_settings: fields of the methods to replace.
    """

    games: Sequence[str]
    frames: int
    seeds: int
    preset: str = "default"
    method_settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)


_SCALES = {
    "smoke": MinAtarScale(("breakout",), 6_400, 2, "small", TINY),
    "short": MinAtarScale(tuple(GAMES), 200_000, 2, "small"),
    "paper": MinAtarScale(tuple(GAMES), FRAMES, SEEDS),
}
"""`paper` is as much as the paper might have done; it has Atari only."""


def _experiment(name: str, methods: Sequence[str], scale: str) -> Experiment:
    def build(scale_name: str, chosen: MinAtarScale) -> Experiment:
        runs = [
            training(
                method,
                game,
                chosen.frames,
                chosen.seeds,
                preset=chosen.preset,
                method_settings=chosen.method_settings,
            )
            for game in chosen.games
            for method in methods
        ]
        return Experiment(name, scale_name, tuple(runs))

    return pick_scale(name, scale, {key: partial(build, key, chosen) for key, chosen in _SCALES.items()})


def minatar(scale: str) -> Experiment:
    """A2C and Meta-PWTD."""
    return _experiment("minatar", METHODS, scale)


def minatar_baselines(scale: str) -> Experiment:
    """A2C-RR on the same games."""
    return _experiment("minatar-baselines", BASELINES, scale)
