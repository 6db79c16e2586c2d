"""Runs whose every table, verdict and drawn number is kept: made-up ones, and some told again from kept digests."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from paircredit.runs import RunWriter
from tests.made_up import example_weights, write_all, write_episodes, write_game, write_own, write_regrets
from tests.studies import test_tabular_claims
from tests.studies.test_game_claims import HNS, LABELS, MINATAR, write_atari
from tests.studies.test_key_to_door_claims import SETTINGS, TestOrderEverywhere, TestOtherMethods, TestWeights
from tests.studies.test_key_to_door_figures import write_all as write_key_to_door

RESULTS = Path(__file__).parents[2] / "results"


def everything(folder: Path) -> None:
    """A few runs for every figure."""
    write_all(folder)


def tabular(folder: Path) -> None:
    """Runs on which the claims about umbrella and DAG hold; one method learns late."""
    test_tabular_claims.write_good(folder)
    test_tabular_claims.write_evaluation(folder, 4, "meta-pwtd", 9_900)


def key_to_door(folder: Path) -> None:
    """Four methods in eight settings, with weights, a search and switches."""
    write_key_to_door(folder)


def key_to_door_claims(folder: Path) -> None:
    """Seven methods at the centre, so that claims can be judged."""
    TestOtherMethods().write(folder)


def key_to_door_weights(folder: Path) -> None:
    """Weights that resemble the handcrafted ones, about which seeds do not quite agree."""
    TestWeights().write(folder, noise=0.1)


def ranking(folder: Path) -> None:
    """Three methods in six settings, one of them a tie."""
    TestOrderEverywhere().write(folder, {SETTINGS[0]: (60.0, 252.0, 250.0), SETTINGS[1]: (60.0, math.inf, math.inf)})


def bsuite(folder: Path) -> None:
    """Whole trainings in one domain, short ones in others, and single episodes that logs can be made of."""
    totals = {"a2c": 56_800, "meta-pwr": 49_361, "meta-pwtd": 48_199, "rgm": 54_421}
    for label, total in totals.items():
        write_regrets(folder / "whole", label, "catch_scale", total, numbers=(0, 4, 5), episodes=100_000)
        write_regrets(folder / "chain", label, "discounting_chain", total / 20, numbers=range(5), episodes=100_000)
    for label in ("a2c", "meta-pwr"):
        write_regrets(folder / "short", label, "catch_noise", 60.0, numbers=(0, 4, 5))
        write_regrets(folder / "short", label, "cartpole", 700.0, numbers=(0, 1), seeds=2)
    regret = np.random.default_rng(0).integers(0, 2, (4, 53)) * 2.0
    single = {"regret": regret, "episode_return": 1 - regret, "episode_length": np.full_like(regret, 9)}
    write_episodes(folder / "single", "a2c", "umbrella_length", [0, 4], single, seeds=2, stride=20)


def games(folder: Path) -> None:
    """Three methods in five games of Atari, two in those of MinAtar."""
    for game, numbers in HNS.items():
        for label, number in zip(LABELS, numbers, strict=True):
            write_atari(folder / "atari", game, label, number)
    for game, gains in (("asterix", (4.0, 4.01)), ("breakout", (4.0, 5.0)), ("freeway", (4.0, 3.0))):
        for label, gain in zip(LABELS, gains, strict=False):
            write_game(folder / "minatar", MINATAR, label, game, MINATAR.random[game] + gain)


def own(folder: Path) -> None:
    """Runs of `paircredit train` on several environments."""
    steps = np.stack([np.arange(81).reshape(9, 9) / 81 + table for table in range(3)])
    phases = {"key_steps": 3, "apple_steps": 4, "door_steps": 2}
    learned = {"weights": example_weights(4, 3), "policy_logits": np.zeros((3, 10, 2))}
    write_own(folder / "table", env_settings={"depth": 4}, method="meta-pwr", arrays=learned, more=("length",))
    write_own(folder / "again" / "table", env_settings={"depth": 8}, last=2.0)
    write_own(folder / "ktd", "key-to-door", "meta-pwr", env_settings=phases, arrays={"weights": steps})
    write_own(folder / "game", "minatar/freeway", "meta-pwtd", arrays={"weights": steps[:, :5, :5]}, seeds=1)
    write_own(folder / "short", "my-maze", "own-method", rows=1, method_settings={"inner.learning_rate": 0.03})


def kept_key_to_door(folder: Path) -> None:
    """The curves of `results/key-to-door-20m` as runs of its specs."""
    columns = ("episode_return", "apple_reward", "door_reward", "key_rate")
    for run, rows in _kept("key-to-door-20m", "key-to-door-curves.csv", _of_the_setting):
        spec, steps = run["spec"], 1920
        with RunWriter(folder / run["name"], "training", spec) as writer:
            for row in rows:
                frames = int(row["frames"])
                place = {"update": frames // steps, "episodes": frames // steps * 16, "frames": frames}
                writer.append(
                    [
                        {"member": member, "seed": seed, **spec["variants"][0]["labels"], **place}
                        | {name: _member(row, member, f"{name} mean", f"{name} deviation") for name in columns}
                        for member, seed in enumerate(spec["seeds"])
                    ]
                )
            labels = {f"label_{name}": np.full(10, x) for name, x in spec["variants"][0]["labels"].items()}
            writer.finish({"seeds": np.array(spec["seeds"]), **labels})


def kept_tabular(folder: Path) -> None:
    """The curves of `results/tabular` as runs of its specs; learned tables from its mean and deviation."""
    with np.load(RESULTS / "tabular" / "weights.npz") as weights:
        for run, rows in _kept("tabular", "curves.csv", lambda run, row: run["name"] == row["run"]):
            spec = run["spec"]
            depth = spec.get("tags", {}).get("depth")
            if f"{run['name']}-mean" in weights and spec["tags"]["role"] == "reset":
                mean, deviation = (weights[f"{run['name']}-{part}"].astype(float) for part in ("mean", "deviation"))
                tables = [mean + (-1) ** seed * deviation for seed in spec["seeds"]]
                states = mean.shape[1]
                whole = np.full((len(tables), states, states), 0.5, dtype=np.float32)
                whole[:, : len(mean)] = tables
                RunWriter(folder / run["name"], "training", spec).finish({"weights": whole})
            if not rows:
                continue
            members, given = int(rows[0]["members"]), spec["weights_from"] is not None
            with RunWriter(folder / run["name"], "training", spec) as writer:
                for row in rows:
                    episodes = int(row["episodes"])
                    place = {"update": episodes // 8, "episodes": episodes, "frames": episodes * depth}
                    writer.append(
                        [
                            {
                                "member": member,
                                "seed": 1000 + member,
                                **place,
                                **({"weights": member % 5} if given else {}),
                            }
                            | dict.fromkeys(("expected_return", "episode_return"), _member(row, member))
                            for member in range(members)
                        ]
                    )
                states = {4: 10, 8: 46, 16: 766}[depth]
                table = {"label_weights": np.arange(members) % 5} if given else {}
                writer.finish({"policy_logits": np.zeros((members, states, 2)), **table})


def kept_minatar(folder: Path) -> None:
    """The curves of `results/minatar` as runs of its specs."""
    for run, rows in _kept("minatar", "minatar-curves.csv", _of_the_game):
        spec = run["spec"]
        with RunWriter(folder / run["name"], "training", spec) as writer:
            for number, row in enumerate(rows):
                update = number * spec["updates"] // len(rows)
                place = {"update": update, "frames": update * 320, "ended_episodes": float(number)}
                writer.append(
                    [
                        {"member": member, "seed": seed, **place, "episode_return": _member(row, member)}
                        for member, seed in enumerate(spec["seeds"])
                    ]
                )
            writer.finish({"seeds": np.array(spec["seeds"])})


def _kept(name: str, curves: str, fits: Any) -> Iterator[tuple[dict[str, Any], list[dict[str, str]]]]:
    """Every run of a kept digest, with the rows of its curves."""
    with open(RESULTS / name / curves, newline="") as file:
        rows = list(csv.DictReader(file))
    for run in json.loads((RESULTS / name / "provenance.json").read_text()):
        yield run, [row for row in rows if fits(run, row)]


def _of_the_setting(run: dict[str, Any], row: dict[str, str]) -> bool:
    labels = run["spec"]["variants"][0]["labels"]
    same = all(float(row[name]) == value for name, value in labels.items())
    return same and row["role"] == "key-to-door" and row["method"] == run["spec"]["method"]


def _of_the_game(run: dict[str, Any], row: dict[str, str]) -> bool:
    return (row["game"], row["method"]) == (run["spec"]["tags"]["game"], run["spec"]["tags"]["label"])


def _member(row: dict[str, str], member: int, mean: str = "mean", deviation: str = "deviation") -> float:
    """A member's number: they lie around the mean on both sides, further out the later they come."""
    return float(row[mean]) + (-1) ** member * (0.5 + member / 10) * float(row[deviation])


SUITES = {
    suite.__name__: suite
    for suite in (
        everything,
        tabular,
        key_to_door,
        key_to_door_claims,
        key_to_door_weights,
        ranking,
        bsuite,
        games,
        own,
        kept_key_to_door,
        kept_tabular,
        kept_minatar,
    )
}
