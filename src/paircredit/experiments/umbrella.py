"""The illustrative analysis: how noisy is the advantage of the one decision that counts?"""

from __future__ import annotations

from paircredit.experiments.spec import Experiment, UmbrellaVarianceSpec, pick_scale


def _experiment(scale: str, lengths: tuple[int, ...], variances: tuple[float, ...], episodes: int) -> Experiment:
    run = UmbrellaVarianceSpec("umbrella-variance", lengths, variances, mean=0.5, episodes=episodes)
    return Experiment("umbrella", scale, (run,))


_SCALES = {
    "smoke": lambda: _experiment("smoke", (5, 10), (1.0,), 20_000),
    "short": lambda: _experiment("short", (2, 5, 10, 20, 50), (0.25, 1.0, 4.0), 40_000),
    "paper": lambda: _experiment("paper", (2, 5, 10, 20, 50, 100), (0.25, 1.0, 4.0, 25.0), 100_000),
}


def umbrella(scale: str) -> Experiment:
    """The umbrella experiment at a scale."""
    return pick_scale("umbrella", scale, _SCALES)
