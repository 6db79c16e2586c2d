"""bsuite runs with made-up numbers, in the rows that training writes."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from paircredit.envs.bsuite import DOMAINS
from paircredit.experiments.bsuite import training
from paircredit.experiments.spec import as_json
from paircredit.experiments.training_run import row_edges
from paircredit.runs import RunWriter


def write_episodes(
    folder: Path,
    label: str,
    domain: str,
    numbers: Sequence[int],
    episodes: Mapping[str, np.ndarray],
    *,
    seeds: int = 1,
    stride: int = 7,
    **spec: Any,
) -> None:
    """A run whose members had these episodes.

    Args:
        folder: where to; the run gets a folder of its own in it.
        label: of the method.
        domain: of bsuite.
        numbers: of the variants.
        episodes: `regret`, `episode_return` and `episode_length` of every episode, [members, episodes].
        seeds: members of each variant.
        stride: updates of a row.
        spec: other entries of the spec.
    """
    total = episodes["regret"].shape[1]
    described = as_json(training(label, domain, total, seeds, numbers=numbers)) | spec
    writer = RunWriter(folder / described["name"], "training", described)
    members = [(variant["labels"], seed) for variant in described["variants"] for seed in variant["seeds"]]
    for begin, end in itertools.pairwise(row_edges(0, total, stride, 1)):
        means = {name: values[:, begin:end].mean(axis=1) for name, values in episodes.items()}
        means["best_return"] = episodes["episode_return"][:, begin:end].max(axis=1)
        writer.append(
            [
                {"member": member, "seed": seed, **labels, "update": begin, "episodes": begin, "frames": 9 * begin}
                | {name: float(values[member]) for name, values in means.items()}
                for member, (labels, seed) in enumerate(members)
            ]
        )
    writer.finish()


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
    """A run whose members have about the same total regret, more of it at the beginning.

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
