"""What is run on Atari's 49 games and MinAtar's five: a run per method and game, all seeds in it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from paircredit.envs.atari import GAMES
from paircredit.envs.minatar import GAMES as MINATAR_GAMES
from paircredit.envs.registry import environment_config
from paircredit.experiments.spec import Recipe, TrainingSpec, resolve_method
from paircredit.settings import values_of

METHODS = ("a2c", "meta-pwtd")
BASELINES = ("a2c-rr",)
"""Beside the others; the rest of the paper's methods needs whole episodes."""
ATARI_FRAMES = 200_000_000
"""Of every member (our choice; the paper's axis cannot be read)."""
MINATAR_FRAMES = 10_000_000
"""The same (our choice: the paper does not have these games); a step is a frame."""
TINY = {"network.trunk": (8, 8), "network.pair_width": 8}


@dataclasses.dataclass(frozen=True)
class GamesScale:
    """How much of it: the frames of every member, the members of every run; and other methods than the experiment's."""

    games: Sequence[str]
    frames: int
    seeds: int
    preset: str = "default"
    method_settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    env_settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    methods: Sequence[str] | None = None


def training(suite: str, method: str, game: str, scale: GamesScale) -> TrainingSpec:
    """One method on one game of a suite; the frames of every member are rounded up to whole updates."""
    env = f"{suite}/{game}"
    made = resolve_method(method, scale.preset, env, scale.method_settings)
    config = values_of(environment_config(env))  # not built, which would need the emulator
    per_update = made.episodes * config["steps"] * config.get("frame_skip", 1)
    return TrainingSpec(
        name=f"{game}-{method}",
        env=env,
        method=method,
        updates=-(-scale.frames // per_update),
        seeds=tuple(range(scale.seeds)),
        env_settings=dict(scale.env_settings),
        method_settings=dict(scale.method_settings),
        preset=scale.preset,
        tags={"role": suite, "label": method, "game": game},
    )


_ATARI = {
    "smoke": GamesScale(
        ("pong",), 1_600, 2, "paper", TINY | {"inner.episodes": 2}, {"most_frames": 240}, methods=METHODS
    ),
    # One group: runs of few members fill the cores side by side (`--workers 4`, docs/performance.md).
    "short": GamesScale(("pong", "breakout"), 8_000_000, 3, "paper", env_settings={"groups": 1}, methods=METHODS),
    "paper": GamesScale(tuple(GAMES), ATARI_FRAMES, 5, "paper"),
}
_MINATAR = {
    "smoke": GamesScale(
        ("breakout",), 6_400, 2, "small", TINY | {"network.filters": (4, 4), "network.picture_width": 8}
    ),
    "short": GamesScale(tuple(MINATAR_GAMES), 200_000, 2, "small"),
    "paper": GamesScale(tuple(MINATAR_GAMES), MINATAR_FRAMES, 10),
}
"""`paper` is as much as the paper might have done; it has Atari only."""


def _runs(suite: str, methods: Sequence[str], scale: GamesScale) -> list[TrainingSpec]:
    """Game by game, so that what is there can be compared at any time."""
    return [training(suite, method, game, scale) for game in scale.games for method in scale.methods or methods]


EXPERIMENTS = (
    Recipe(
        "atari", "A2C, Meta-PWTD and A2C-RR on 49 games of Atari", _ATARI, partial(_runs, "atari", METHODS + BASELINES)
    ),
    Recipe(
        "minatar",
        "A2C and Meta-PWTD on the five games of MinAtar, Atari in small",
        _MINATAR,
        partial(_runs, "minatar", METHODS),
    ),
    Recipe("minatar-baselines", "A2C-RR on the same", _MINATAR, partial(_runs, "minatar", BASELINES)),
)
