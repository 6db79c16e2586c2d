"""Playing the real bsuite with a generator that remembers what it drew."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import matplotlib
import numpy as np

CARTPOLE_FIELDS = ("x", "x_dot", "theta", "theta_dot")


def bsuite_module() -> Any:
    """The package; what it and its dependencies warn about while they are imported is not ours to mend."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import bsuite
    return bsuite


class Recorder:
    """Stands in for a `RandomState`, forwards to one, and keeps what every call returned."""

    def __init__(self, seed: int) -> None:
        self.generator = np.random.RandomState(seed)
        self.draws: list[tuple[str, Any]] = []

    def __getattr__(self, name: str) -> Any:
        draw = getattr(self.generator, name)

        def recorded(*args: Any, **kwargs: Any) -> Any:
            value = draw(*args, **kwargs)
            self.draws.append((name, value))
            return value

        return recorded

    def take(self) -> list[tuple[str, Any]]:
        """The draws since the last call."""
        draws, self.draws = self.draws, []
        return draws


class Played(NamedTuple):
    """What happened in one episode of the real environment.

    `draws[t]` are the draws of the call that led to time t, `states[t]` is cartpole's state then.
    """

    observations: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    last: np.ndarray
    discounts: np.ndarray
    draws: list[list[tuple[str, Any]]]
    states: list[tuple]


class Original:
    """One variant of the real package."""

    def __init__(self, bsuite_id: str, seed: int) -> None:
        self.env = bsuite_module().load_from_id(bsuite_id)
        self.raw = getattr(self.env, "raw_env", self.env)
        self.chance, self.noise = Recorder(seed), Recorder(seed + 1)
        if hasattr(self.raw, "_rng"):
            self.raw._rng = self.chance
        if self.raw is not self.env:
            self.env._rng = self.noise

    def play(self, choose: Any) -> Played:
        """One episode; `choose` picks an action, given the observation."""
        now = self.env.reset()
        observations, draws, states = [now.observation], [self._take()], [self._state()]
        actions, rewards, last, discounts = [], [], [], []
        while not now.last():
            actions.append(int(choose(now.observation.reshape(-1))))
            now = self.env.step(actions[-1])
            observations.append(now.observation)
            rewards.append(now.reward)
            last.append(now.last())
            discounts.append(now.discount)
            draws.append(self._take())
            states.append(self._state())
        return Played(
            np.stack(observations).reshape(len(observations), -1),
            np.array(actions, np.int32),
            np.array(rewards, np.float64),
            np.array(last),
            np.array(discounts),
            draws,
            states,
        )

    def _take(self) -> list[tuple[str, Any]]:
        return self.chance.take() + self.noise.take()

    def _state(self) -> tuple:
        return tuple(getattr(self.raw, "_state", ()))


def total_regret(bsuite_id: str, original: Original, episodes: list[Played]) -> float:
    """The total regret in the original's words: what the environment counts, else what its analysis makes of a log."""
    info = original.env.bsuite_info()
    if "total_regret" in info:
        return float(info["total_regret"])
    with warnings.catch_warnings(), matplotlib.rc_context():  # its plots set a style for the whole process
        warnings.simplefilter("ignore")
        import pandas
        from bsuite.experiments.cartpole import analysis as cartpole
        from bsuite.experiments.discounting_chain import analysis as chain
    log = {
        "episode": [len(episodes)],
        "total_return": [sum(episode.rewards.sum() for episode in episodes)],
        "mapping_seed": [int(bsuite_id.partition("/")[2])],
        **{name: [value] for name, value in info.items()},
    }
    preprocess = cartpole.cartpole_preprocess if bsuite_id.startswith("cartpole") else chain.dc_preprocess
    return float(preprocess(pandas.DataFrame(log)).total_regret.iloc[0])
