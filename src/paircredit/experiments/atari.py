"""The 49 games of Atari: one run per method and game, all seeds in one program."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from paircredit.envs.atari.games import GAMES
from paircredit.experiments.spec import Experiment, TrainingSpec, pick_scale

METHODS = ("a2c", "meta-pwtd", "a2c-rr")
"""Those that the paper has on Atari; the others need whole episodes."""
FRAMES = 200_000_000
"""Of every member (our choice; the paper's axis cannot be read)."""
SEEDS = 5
"""Paper, Atari."""
ACTORS = 16
"""Of every member (our choice: the paper's batch in Key-to-Door); `inner.episodes` of the methods."""
STEPS = 20
"""Of a piece (paper, Atari appendix)."""
FRAMES_PER_STEP = 4
"""For which an action is repeated."""
TINY = {"inner.episodes": 2, "network.trunk": (16, 16), "network.pair_width": 8}


def updates_for(frames: int, actors: int = ACTORS) -> int:
    """So many updates that a member sees at least so many frames."""
    return -(-frames // (actors * STEPS * FRAMES_PER_STEP))


def training(
    method: str,
    game: str,
    frames: int,
    seeds: int,
    *,
    preset: str = "paper",
    method_settings: Mapping[str, Any] | None = None,
) -> TrainingSpec:
    """One method on one game.

    Args:
        method: name of the method.
        game: name of the game.
        frames: of every member, rounded up to whole updates.
        seeds: members.
        preset: of the method.
        method_settings: fields of the method to replace.
    """
    settings = dict(method_settings or {})
    return TrainingSpec(
        name=f"{game}-{method}",
        env=f"atari/{game}",
        method=method,
        updates=updates_for(frames, settings.get("inner.episodes", ACTORS)),
        seeds=tuple(range(seeds)),
        method_settings=settings,
        preset=preset,
        tags={"role": "atari", "label": method, "game": game},
    )


@dataclasses.dataclass(frozen=True)
class AtariScale:
    """How much of it.

    Attributes:
        games: which of them.
        methods: which of those of the paper.
        frames: of every member.
        seeds: members of every run.
        method_settings: fields of the methods to replace.
    """

    games: Sequence[str]
    methods: Sequence[str]
    frames: int
    seeds: int
    method_settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)


_SCALES = {
    "smoke": AtariScale(("pong",), METHODS[:2], 800, 2, TINY),
    "short": AtariScale(("pong", "breakout"), METHODS[:2], 10_000_000, 3),
    "paper": AtariScale(tuple(GAMES), METHODS, FRAMES, SEEDS),
}


def atari(scale: str) -> Experiment:
    """A2C, Meta-PWTD and A2C-RR, game by game, so that what is there can be compared at any time."""

    def build(scale_name: str, chosen: AtariScale) -> Experiment:
        runs = [
            training(method, game, chosen.frames, chosen.seeds, method_settings=chosen.method_settings)
            for game in chosen.games
            for method in chosen.methods
        ]
        return Experiment("atari", scale_name, tuple(runs))

    return pick_scale("atari", scale, {name: partial(build, name, chosen) for name, chosen in _SCALES.items()})
