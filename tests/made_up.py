"""Runs with made-up numbers, in the rows that training writes: whoever looks at results need not train."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from paircredit.envs.bsuite.sweep import DOMAINS
from paircredit.envs.dag import num_states
from paircredit.experiments.spec import CreditSpec, TrainingSpec, UmbrellaVarianceSpec, as_json
from paircredit.experiments.training_run import row_edges
from paircredit.runs import Run, RunWriter, find_runs
from paircredit.studies import bsuite, games
from paircredit.studies.bsuite.exhibits import VARIED
from paircredit.studies.games.measures import ATARI, MINATAR, Suite
from paircredit.studies.key_to_door.runs import CENTRAL, METHODS, SEARCH, SEARCHES, SWITCHES, Setting
from paircredit.studies.key_to_door.weights import Phases, blocks

Rows = Iterable[Sequence[Mapping[str, Any]]]
LEAST = {
    "training": TrainingSpec("", "made-up", "made-up", 1, ()),
    "umbrella-variance": UmbrellaVarianceSpec("", (), (), 0.0, 0),
    "credit": CreditSpec("", "made-up", {}, 0),
}


def write_run(
    path: Path,
    spec: Mapping[str, Any],
    rows: Rows = (),
    arrays: Mapping[str, np.ndarray] | None = None,
    *,
    kind: str = "training",
    finished: bool = True,
) -> None:
    """A run folder with these rows, appended part by part; finished, or stopped after them.

    What the spec does not say is as in a spec of that kind that says no more than it must.
    """
    with RunWriter(path, kind, as_json(LEAST[kind]) | {"name": path.name, **spec}) as writer:
        for part in rows:
            writer.append(part)
        if finished:
            writer.finish(arrays)


def write_episodes(
    folder: Path,
    label: str,
    domain: str,
    numbers: Sequence[int],
    episodes: Mapping[str, np.ndarray],
    *,
    seeds: int = 1,
    stride: int = 7,
    finished: bool = True,
    **spec: Any,
) -> None:
    """A run on bsuite whose members had these episodes.

    Args:
        folder: where to; the run gets a folder of its own in it.
        label: of the method.
        domain: of bsuite.
        numbers: of the variants.
        episodes: `regret`, `episode_return` and `episode_length` of every episode, [members, episodes].
        seeds: members of each variant.
        stride: updates of a row.
        finished: or stopped.
        spec: other entries of the spec.
    """
    total = episodes["regret"].shape[1]
    described = as_json(bsuite.runs.training(bsuite.runs.Candidate(label), domain, total, seeds, numbers)) | spec
    members = [(variant["labels"], seed) for variant in described["variants"] for seed in variant["seeds"]]

    def rows() -> Rows:
        for begin, end in itertools.pairwise(row_edges(0, total, stride, 1)):
            means = {name: values[:, begin:end].mean(axis=1) for name, values in episodes.items()}
            means["best_return"] = episodes["episode_return"][:, begin:end].max(axis=1)
            place = {"update": begin, "episodes": begin, "frames": 9 * begin}
            yield [
                {"member": member, "seed": seed, **labels, **place}
                | {name: float(values[member]) for name, values in means.items()}
                for member, (labels, seed) in enumerate(members)
            ]

    write_run(folder / described["name"], described, rows(), finished=finished)


def write_regrets(
    folder: Path,
    label: str,
    domain: str,
    total: float,
    *,
    numbers: Sequence[int] | None = None,
    episodes: int = 100,
    spread: float = 0.02,
    seeds: int = 3,
    **spec: Any,
) -> None:
    """A run on bsuite whose members have about the same total regret, more of it at the beginning.

    Args:
        folder: where to.
        label: of the method.
        domain: of bsuite.
        total: the mean over members.
        numbers: of the variants, or all of them.
        episodes: of every member; cartpole is given as many.
        spread: share of the total by which members differ.
        seeds: members of each variant.
        spec: other entries of the spec.
    """
    numbers = range(len(DOMAINS[domain].settings)) if numbers is None else numbers
    members = len(numbers) * seeds
    factors = 1 + spread * np.resize(np.linspace(-1, 1, seeds), members)
    falling = np.linspace(2, 0, episodes) / episodes
    regret = total * factors[:, None] * falling / falling.sum()
    made_up = {"regret": regret, "episode_return": -regret, "episode_length": np.full_like(regret, 9.0)}
    write_episodes(folder, label, domain, numbers, made_up, seeds=seeds, stride=max(1, episodes // 20), **spec)


ROWS = 20
"""Of every member."""
SILENT = 2
"""Rows before the first game ends."""


def write_game(
    folder: Path,
    suite: Suite,
    label: str,
    game: str,
    score: float,
    *,
    seeds: int = 5,
    frames: int = 64_000,
    spread: float = 0.02,
    silent: int = SILENT,
    stopped_after: int | None = None,
) -> None:
    """A run on Atari or MinAtar whose members come from random play to about the same score, half-way through training.

    Args:
        folder: where to.
        suite: of the game.
        label: of the method.
        game: its name.
        score: the mean over members.
        seeds: members.
        frames: of every member.
        spread: share of what is gained over random play by which members differ, at most.
        silent: rows before the first game ends, in which returns are 0.
        stopped_after: this many rows of the first member and one less of the last, and then it was stopped.
    """
    spec = games.runs.training(suite.role, label, game, games.runs.GamesScale((game,), frames, seeds))
    per_update = 1280 if suite is ATARI else 320
    random = suite.random[game]
    factors = 1 + spread * np.linspace(-1, 1, seeds)
    updates = np.linspace(0, spec.updates, ROWS + 1).astype(int)[:-1]
    rows = [
        {"member": member, "seed": member, "update": int(update), "frames": int(update) * per_update}
        | {
            "episode_return": 0.0
            if row < silent
            else float(random + min(1.0, 2 * row / ROWS) * factor * (score - random))
        }
        | {"ended_episodes": float(max(0, row + 1 - silent))}
        for row, update in enumerate(updates)
        for member, factor in enumerate(factors)
    ]
    kept = rows if stopped_after is None else rows[: max(0, stopped_after * seeds - 1)]
    write_run(folder / spec.name, as_json(spec), [kept], finished=stopped_after is None)


EPISODES = 16
SMALL = Phases(2, 34, 2)
"""Phases short enough for quick tests, and long enough for lags that count as far."""


def write_method(
    folder: Path,
    label: str,
    jumps: Mapping[Any, Sequence[float]],
    *,
    role: str = METHODS,
    updates: int = 400,
    stride: int = 5,
    first_seed: int = 0,
    phases: Phases = SMALL,
    arrays: Mapping[str, np.ndarray] | None = None,
    name: str | None = None,
    noise: float = 0.0,
    less_apples: bool = False,
    finished: bool = True,
    **spec: Any,
) -> None:
    """A run of one method in Key-to-Door; every seed's door reward jumps from 0 to 10 at a known time.

    Args:
        folder: where to.
        label: of the method.
        jumps: for each setting (or pair of a setting and further columns of the rows) the updates after which each
            seed's door reward is 10.
        role: of the run.
        updates: how many.
        stride: how many of them make a row.
        first_seed: others follow.
        phases: of an episode.
        arrays: beside the seeds and labels of the members.
        name: of the run, unless it is that of role and label.
        noise: deviation of the door reward's rows.
        less_apples: half of the usual apples are found.
        finished: or stopped.
        spec: further entries of the spec.
    """
    name = name or f"{role}-{label}"
    steps = dict(zip(("key_steps", "apple_steps", "door_steps"), phases, strict=True))
    spec = {"name": name, "method": label, "updates": updates, "env_settings": steps, **spec}
    members = []
    for kind, times in jumps.items():
        setting, more = kind if isinstance(kind, tuple) and not isinstance(kind, Setting) else (kind, ())
        members += [(setting, dict(more), first_seed + index, jump) for index, jump in enumerate(times)]
    generator = np.random.default_rng(0)

    def rows() -> Rows:
        for update in range(0, updates, stride):
            part = []
            for member, (setting, more, seed, jump) in enumerate(members):
                learned = float(np.mean(np.arange(update, update + stride) >= jump))
                door = 10 * learned + noise * float(generator.normal())
                apples = setting.mean * (5 if less_apples else 10) * update / updates
                part.append(
                    {"member": member, "seed": seed, **setting._asdict(), **more, "update": update}
                    | {"episodes": update * EPISODES, "frames": update * EPISODES * phases.steps}
                    | {"episode_return": apples + door, "apple_reward": apples, "door_reward": door}
                    | {"key_rate": learned}
                )
            yield part

    labels = {f"label_{field}": np.array([getattr(m[0], field) for m in members]) for field in Setting._fields}
    own = {"seeds": np.array([m[2] for m in members]), **labels, **(arrays or {})}
    write_run(folder / name, spec | {"tags": {"role": role, "label": label}}, rows(), own, finished=finished)


def frames(update: float, phases: Phases = SMALL) -> float:
    """After this many updates."""
    return float(update * EPISODES * phases.steps)


def weights(values: Mapping[str, float], members: int, phases: Phases = SMALL, spread: float = 0.0) -> np.ndarray:
    """Matrices [members, T, T] with a weight per block, ½ elsewhere, and a little more for each member."""
    matrix = np.full((phases.steps, phases.steps), 0.5)
    for name, chosen in blocks(phases).items():
        matrix[chosen] = values.get(name, 0.5)
    return np.stack([matrix + spread * (index - (members - 1) / 2) for index in range(members)])


LIKE_HANDCRAFTED = {
    "key → apple": 0.2,
    "key → door": 0.7,
    "apple → apple, near": 0.8,
    "apple → apple, far": 0.1,
    "apple → door": 0.3,
    "door → door": 0.8,
}


def spread(middle: float, seeds: int = 5, step: float = 4) -> list[float]:
    """Updates around a median."""
    return [middle + step * (index - seeds // 2) for index in range(seeds)]


def write_central(folder: Path, **middles: float) -> None:
    """The four methods at the central setting; medians of the updates at which they learn, by label with _ for -."""
    chosen = {"a2c": 250.0, "h_pwr": 60.0, "meta_pwr": 150.0, "meta_pwtd": 200.0} | middles
    for label, middle in chosen.items():
        write_method(folder, label.replace("_", "-"), {CENTRAL: spread(middle)})


UPDATES, PER_UPDATE = 40, 10
"""Of runs of `paircredit train`; a row every two updates."""


def write_own(
    folder: Path,
    env: str = "dag",
    method: str = "a2c",
    *,
    env_settings: Mapping[str, Any] | None = None,
    method_settings: Mapping[str, Any] | None = None,
    seeds: int = 3,
    last: float = 4.0,
    more: tuple[str, ...] = (),
    arrays: dict[str, np.ndarray] | None = None,
    rows: int = UPDATES // 2,
    finished: bool = True,
) -> None:
    """A run of `paircredit train` whose return rises from 0 to about `last`, and what else it records along with it.

    Args:
        folder: of the run; its name is the run's.
        env: name of the environment.
        method: name of the method.
        env_settings: all of them.
        method_settings: those that differ from the preset.
        seeds: members, whose returns are a tenth apart.
        last: the return of the first member in the end.
        more: further quantities; the n-th of them is the return times n + 2.
        arrays: of the run.
        rows: of every member.
        finished: or stopped.
    """
    spec = TrainingSpec(
        folder.name,
        env,
        method,
        UPDATES,
        tuple(range(seeds)),
        dict(env_settings or {}),
        dict(method_settings or {}),
        tags={"role": "train"},
    )
    parts = []
    for row in range(rows):
        returns = [last * row / (UPDATES // 2 - 1) + 0.1 * member for member in range(seeds)]
        parts.append(
            [
                {"member": member, "seed": member, "update": 2 * row, "episodes": 20 * row}
                | {"frames": 2 * row * PER_UPDATE, "episode_return": own}
                | {name: (number + 2) * own for number, name in enumerate(more)}
                for member, own in enumerate(returns)
            ]
        )
    write_run(folder, as_json(spec), parts, {"seeds": np.arange(seeds)} | (arrays or {}), finished=finished)


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
    rows = []
    for length in (2, 5):
        for variance in (0.5, 4.0):
            for action, ratio in ((0, 1.02), (1, 0.99)):
                predicted = (length - 1) * variance
                case = {"length": length, "variance": variance, "action": action, "episodes": 1000}
                case |= {"mean": 2.0 * action - 1, "exact_mean": 2.0 * action - 1, "standard_error": 0.1}
                rows += [
                    case
                    | {"estimator": "Monte Carlo"}
                    | {"measured_variance": ratio * predicted, "predicted_variance": predicted},
                    case | {"estimator": "PWR", "measured_variance": pwr_variance, "predicted_variance": 0.0},
                ]
    write_run(folder / "umbrella-variance", {"seed": 3}, [rows], kind="umbrella-variance")


def example_weights(depth: int, tables: int) -> np.ndarray:
    """Tables [N, S, S] in which every entry differs from its neighbours, and every table from the others."""
    states = num_states(depth)
    entries = np.arange(states * states).reshape(states, states) % 97 / 200
    return np.stack([entries + table / 10 for table in range(tables)]).astype(np.float32)


def write_reset(folder: Path, depth: int, label: str) -> None:
    spec = {"method": label, "updates": 1500, "seeds": [0, 1, 2]}
    spec |= {"tags": {"role": "reset", "depth": depth, "label": label}}
    write_run(folder / f"dag{depth}-reset-{label}", spec, arrays={"weights": example_weights(depth, 3)})


def jumps(depth: int, times: Sequence[float], before: Sequence[float], given: Sequence[int] = ()) -> Rows:
    """Rows of policies that come to the best return at these times, of 1000 episodes in 21 updates."""
    for episodes in range(0, 1001, 50):
        place = {"update": episodes // 50, "episodes": episodes, "frames": episodes * depth}
        yield [
            {"member": member, "seed": member, **place, **({"weights": given[member]} if given else {})}
            | {"expected_return": depth / 2 if episodes >= time else before[member], "episode_return": 0.0}
            for member, time in enumerate(times)
        ]


def write_evaluation(folder: Path, depth: int, label: str, times: Sequence[float], finished: bool = True) -> None:
    spec = {"method": label, "updates": 21, "seeds": list(range(len(times)))}
    spec |= {"tags": {"role": "evaluation", "depth": depth, "label": label}}
    rows = jumps(depth, times, [0.1 * member for member in range(len(times))])
    write_run(folder / f"dag{depth}-train-{label}", spec, rows, finished=finished)


def write_search(folder: Path) -> None:
    """Two λ of the regular return and Meta-PWR at depth 4, two policies each."""
    for label, lambdas in (("regular", (1.0, 0.5)), ("meta-pwr", (1.0,))):
        times = (300.0, 400.0) * len(lambdas)
        tried = [{"lambda": lambdas[member // 2], "rate": 0.01, "start": 0.0} for member in range(len(times))]
        rows = ([row | tried[row["member"]] for row in point] for point in jumps(4, times, [0.0] * len(times)))
        spec = {"method": label, "updates": 21, "seeds": list(range(len(times)))}
        write_run(folder / f"search4-{label}", spec | {"tags": {"role": "search", "depth": 4, "label": label}}, rows)


def write_masked_values(folder: Path) -> None:
    spec = {"method": "meta-pwtd", "updates": 100, "seeds": [0, 1], "value_masks": [0, 4, 8]}
    arrays = {"weights": example_weights(8, 6), "label_mask": np.array([0, 0, 4, 4, 8, 8])}
    write_run(folder / "dag8-masked-values", spec | {"tags": {"role": "masked-values", "depth": 8}}, arrays=arrays)


def write_switch(folder: Path) -> None:
    """Weights ¼ everywhere; two policies for each of two tables, learned after 100 to 400 episodes."""
    tags = {"depth": 4, "label": "meta-pwr", "switch": "default"}
    tables = {"weights": np.full((2, 10, 10), 0.25)}
    write_run(folder / "reset", {"tags": tags | {"role": "switch-reset"}}, arrays=tables)
    spec = {"updates": 21, "weights_from": "reset", "tags": tags | {"role": "switch-evaluation"}}
    rows = jumps(4, (100, 300, 200, 400), [0.0] * 4, given=(0, 1, 0, 1))
    write_run(folder / "train", spec, rows, {"label_weights": np.array([0, 1, 0, 1])})


def write_credit(folder: Path, name: str = "dag8-credit") -> None:
    rows = []
    for preference in (0.0, 1.0):
        for values in ("exact", "zero"):
            for number, estimator in enumerate(ESTIMATORS, start=1):
                rows.append(
                    {"preference": preference, "estimator": estimator, "values": values}
                    | {"relative_bias": 0.1 * number, "bias_noise": 0.05, "variance": 1 / number}
                    | {"cosine": 0.2 * number, "snr": number + preference + (values == "zero") / 2}
                )
    write_run(folder / name, {"env_settings": {"depth": 8}, "seed": 0}, [rows], kind="credit")


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
    write_search(folder / "search")
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
