"""Run folders with made-up numbers, so that figures can be drawn without training."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from paircredit.analysis.game_suites import ATARI, MINATAR
from paircredit.analysis.key_to_door_results import CENTRAL, SEARCH, SEARCHES, SWITCHES
from paircredit.envs.dag import num_states
from paircredit.figures.bsuite_regret import VARIED
from paircredit.runs import Run, RunWriter, find_runs
from tests.bsuite_runs import write_regrets
from tests.game_runs import write_game
from tests.key_to_door_runs import weights, write_method
from tests.own_runs import write_own

TIMES = {
    "regular": (900.0, 500.0, 700.0),
    "h-pwr": (400.0, 400.0, 400.0),
    "meta-pwr": (300.0, 200.0, 400.0, 500.0),
    "meta-pwtd": (100.0, math.inf, math.inf),
}
"""Episodes at which the members of each method jump to the best return."""
ESTIMATORS = ("Monte Carlo", "λ = 0.5", "PWR, handcrafted weights", "PWTD, learned weights")


def write_umbrella(folder: Path, pwr_variance: float = 0.0) -> None:
    """Two lengths and two variances; Monte Carlo is off by a factor of 1.02 for action 0 and 0.99 for action 1."""
    writer = RunWriter(folder / "umbrella-variance", "umbrella-variance", {"name": "umbrella-variance", "seed": 3})
    for length in (2, 5):
        for variance in (0.5, 4.0):
            for action, ratio in ((0, 1.02), (1, 0.99)):
                predicted = (length - 1) * variance
                case = {"length": length, "variance": variance, "action": action, "episodes": 1000}
                case |= {"mean": 2.0 * action - 1, "exact_mean": 2.0 * action - 1, "standard_error": 0.1}
                writer.append(
                    [
                        case
                        | {"estimator": "Monte Carlo"}
                        | {"measured_variance": ratio * predicted, "predicted_variance": predicted},
                        case | {"estimator": "PWR", "measured_variance": pwr_variance, "predicted_variance": 0.0},
                    ]
                )
    writer.finish()


def example_weights(depth: int, tables: int) -> np.ndarray:
    """Tables [N, S, S] in which every entry differs from its neighbours, and every table from the others."""
    states = num_states(depth)
    entries = np.arange(states * states).reshape(states, states) % 97 / 200
    return np.stack([entries + table / 10 for table in range(tables)]).astype(np.float32)


def write_reset(folder: Path, depth: int, label: str) -> None:
    name = f"dag{depth}-reset-{label}"
    spec = {"name": name, "method": label, "updates": 1500, "seeds": [0, 1, 2]}
    spec |= {"tags": {"role": "reset", "depth": depth, "label": label}}
    RunWriter(folder / name, "training", spec).finish({"weights": example_weights(depth, 3)})


def write_evaluation(folder: Path, depth: int, label: str, times: Sequence[float]) -> None:
    name = f"dag{depth}-train-{label}"
    spec = {"name": name, "method": label, "updates": 21, "seeds": list(range(len(times)))}
    spec |= {"tags": {"role": "evaluation", "depth": depth, "label": label}}
    writer = RunWriter(folder / name, "training", spec)
    for episodes in range(0, 1001, 50):
        writer.append(
            [
                {
                    "member": member,
                    "seed": member,
                    "update": episodes // 50,
                    "episodes": episodes,
                    "frames": episodes * depth,
                    "expected_return": depth / 2 if episodes >= time else 0.1 * member,
                    "episode_return": 0.0,
                }
                for member, time in enumerate(times)
            ]
        )
    writer.finish()


def write_masked_values(folder: Path) -> None:
    spec = {"name": "dag8-masked-values", "method": "meta-pwtd", "updates": 100, "seeds": [0, 1]}
    spec |= {"value_masks": [0, 4, 8], "tags": {"role": "masked-values", "depth": 8}}
    writer = RunWriter(folder / spec["name"], "training", spec)
    writer.finish({"weights": example_weights(8, 6), "label_mask": np.array([0, 0, 4, 4, 8, 8])})


def write_switch(folder: Path) -> None:
    """Weights ¼ everywhere; two policies for each of two tables, learned after 100 to 400 episodes."""
    tags = {"depth": 4, "label": "meta-pwr", "switch": "default"}
    writer = RunWriter(folder / "reset", "training", {"name": "reset", "tags": tags | {"role": "switch-reset"}})
    writer.finish({"weights": np.full((2, 10, 10), 0.25)})
    spec = {"name": "train", "updates": 21, "weights_from": "reset", "tags": tags | {"role": "switch-evaluation"}}
    writer = RunWriter(folder / "train", "training", spec)
    for episodes in range(0, 1001, 50):
        common = {"update": episodes // 50, "episodes": episodes, "frames": 4 * episodes, "episode_return": 0.0}
        writer.append(
            [
                {"member": member, "seed": member, "expected_return": 2.0 if episodes >= time else 0.0, **common}
                for member, time in enumerate((100, 300, 200, 400))
            ]
        )
    writer.finish({"label_weights": np.array([0, 1, 0, 1])})


def write_credit(folder: Path, name: str = "dag8-credit") -> None:
    writer = RunWriter(folder / name, "credit", {"name": name, "env_settings": {"depth": 8}, "seed": 0})
    for preference in (0.0, 1.0):
        for values in ("exact", "zero"):
            for number, estimator in enumerate(ESTIMATORS, start=1):
                writer.append(
                    [
                        {"preference": preference, "estimator": estimator, "values": values}
                        | {"relative_bias": 0.1 * number, "bias_noise": 0.05, "variance": 1 / number}
                        | {"cosine": 0.2 * number, "snr": number + preference + (values == "zero") / 2}
                    ]
                )
    writer.finish()


def write_key_to_door(folder: Path) -> None:
    """Two methods with and without slips, a search and a switch."""
    slippery = CENTRAL._replace(slip=0.1)
    learned = weights({}, 4).astype(np.float32)
    arrays = {"weights": learned, "snapshots": learned[None].astype(np.float16), "snapshot_updates": np.array([40])}
    for label, more in (("a2c", {}), ("meta-pwr", arrays)):
        write_method(folder, label, {CENTRAL: [0, 10], slippery: [0, 10]}, updates=40, arrays=more)
    tried = {(CENTRAL, (("lambda", 0.5), ("learning_rate", 2e-4))): [0, 10]}
    write_method(folder, "a2c", tried, role=SEARCH, updates=40)
    write_method(folder, "meta-pwr", {(CENTRAL, (("switch", "default"),)): [0, 10]}, role=SWITCHES, updates=40)
    write_method(folder, "rgm", {(CENTRAL, (("tried", "rate 1"),)): [0, 10]}, role=SEARCHES, updates=40)


def write_all(folder: Path) -> list[Run]:
    """Runs for every figure."""
    write_umbrella(folder)
    for depth in (4, 8, 16):
        for label in ("meta-pwr", "meta-pwtd"):
            write_reset(folder, depth, label)
    for depth in (4, 8):
        for label, times in TIMES.items():
            write_evaluation(folder, depth, label, times)
    write_masked_values(folder)
    write_credit(folder)
    write_switch(folder / "switches")
    write_key_to_door(folder)
    for domain in VARIED:
        for label in ("a2c", "meta-pwr"):
            write_regrets(folder / "bsuite", label, domain, 30.0, numbers=(0, 4))
    for suite, game in ((ATARI, "pong"), (ATARI, "breakout"), (MINATAR, "breakout")):
        for label, score in (("a2c", 10.0), ("meta-pwtd", 12.0)):
            write_game(folder / suite.role, suite, label, game, score)
    learned = {"weights": example_weights(4, 3), "policy_logits": np.zeros((3, num_states(4), 2))}
    write_own(folder / "own" / "mine", method="meta-pwr", env_settings={"depth": 4}, arrays=learned)
    return find_runs(folder)
