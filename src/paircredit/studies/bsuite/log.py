"""Our runs in the words of bsuite's own logs: one CSV file per bsuite id, which its analysis reads.

The original counts from the first episode on and writes a row after some of them (`logged_episodes`): steps, return and
regret so far, and length and return of the episode itself. Our metrics hold means over parts of training; sums follow
from these, and each logged episode is a part of its own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from paircredit.envs.bsuite.sweep import SWEEP, domain_sweep, logged_episodes
from paircredit.envs.registry import environment_config
from paircredit.errors import PaircreditError
from paircredit.results.curves import recorded
from paircredit.results.exhibits import plain_table
from paircredit.runs.files import make_folder, write_file
from paircredit.runs.folder import rounded
from paircredit.runs.read import Run
from paircredit.settings import values_of

PREFIX = "bsuite/"
"""What names of environments begin with."""
STANDARD = ("steps", "episode", "total_return", "episode_len", "episode_return")
"""Columns of all domains, in the original's order."""
WHOLE_RETURNS = ("catch", "umbrella_length", "umbrella_distract", "cartpole")
"""Domains that pay whole numbers, so that sums of means can be made exact."""
PADDING = ("max_length", "max_distractors")
"""Settings that make variants of one domain the same size; the task is the same without them."""
_RECORDED = ("episode_return", "episode_length", "best_return", "regret")


def write_bsuite_logs(runs: Sequence[Run], folder: Path) -> list[Path]:
    """Write the logs of all runs on bsuite into a new folder.

    Below it is a folder per method, and in it one per repetition, because a folder of the original holds each bsuite id
    once: `FOLDER/a2c/0/bsuite_id_-_catch-0.csv`. Runs on other environments are passed over.
    """
    contents: dict[str, bytes] = {}
    for run in runs:
        if run.kind == "training" and str(run.spec["env"]).startswith(PREFIX):
            for name, content in bsuite_logs(run).items():
                if name in contents:
                    raise PaircreditError(
                        f"{run.path} and another run are of the same method and variant of bsuite ({name}); name a "
                        "folder with one of them."
                    )
                contents[name] = content
    if not contents:
        raise PaircreditError("None of these runs is on an environment of bsuite, so there are no logs to write.")
    make_folder(folder)
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_file(folder / name, content)
    return [folder / name for name in contents]


def bsuite_logs(run: Run) -> dict[str, bytes]:
    """The logs of one run: names such as `a2c/0/bsuite_id_-_catch-0.csv`, and their contents."""
    if run.spec["protocol"] != "online":
        raise PaircreditError(
            f"The run {run.path} was made with resets, between which episodes are not recorded; bsuite's logs need the "
            "online protocol."
        )
    _refuse_other_tasks(run)
    found = recorded(run)
    if found is None:
        raise PaircreditError(f"The run {run.path} is too short: it has recorded only one point.")
    rows, edges = found.columns, found.edges["episodes"].astype(np.int64)
    logged = np.array(logged_episodes(int(edges[-1])))
    # Row r is over the episodes edges[r] + 1 … edges[r + 1]; a logged one needs a row of its own.
    own = np.searchsorted(edges, logged - 1)
    if not (np.array_equal(edges[own], logged - 1) and np.array_equal(edges[own + 1], logged)):
        raise PaircreditError(
            f"The run {run.path} has no record of single episodes, which bsuite's logs are made of; train with one "
            "episode per update (--method.inner.episodes 1) and this version."
        )
    ids = rows["bsuite_id"][:, 0] if "bsuite_id" in rows else [_id_of(run)] * len(rows["member"])
    logs: dict[str, bytes] = {}
    for member, bsuite_id in enumerate(str(name) for name in ids):
        repetition = sum(str(name) == bsuite_id for name in ids[:member])
        columns = _columns(bsuite_id, {name: rows[name][member] for name in _RECORDED}, edges, own)
        name = f"{_folder_of(run)}/{repetition}/bsuite_id_-_{bsuite_id.replace('/', '-')}.csv"
        columns["episode"] = logged
        names = [*STANDARD, *(other for other in columns if other not in STANDARD)]
        table = plain_table(names, zip(*(columns[other].tolist() for other in names), strict=True))
        assert table is not None
        logs[name] = table.csv().encode()
    return logs


def _columns(
    bsuite_id: str, recorded: dict[str, np.ndarray], edges: np.ndarray, own: np.ndarray
) -> dict[str, np.ndarray]:
    """All columns but the number of the episode, at the logged episodes."""
    domain = bsuite_id.partition("/")[0]
    sizes = np.diff(edges)

    def so_far(name: str, *, whole: bool) -> np.ndarray:
        sums = recorded[name].astype(float) * sizes
        summed = np.cumsum(np.rint(sums) if whole else sums)[own]
        return summed if whole else np.array([rounded(value) for value in summed])  # means have no more digits

    columns = {
        "steps": so_far("episode_length", whole=True).astype(np.int64),
        "total_return": so_far("episode_return", whole=domain in WHOLE_RETURNS),
        "episode_len": np.rint(recorded["episode_length"][own]).astype(np.int64),
        "episode_return": recorded["episode_return"][own].astype(float),
    }
    if domain == "cartpole":
        columns["raw_return"] = columns["total_return"]
        columns["best_episode"] = np.maximum.accumulate(recorded["best_return"].astype(float))[own]
    elif domain != "discounting_chain":
        columns["total_regret"] = so_far("regret", whole=True)
    return columns


def _folder_of(run: Run) -> str:
    """The method, and what is changed about it."""
    changed = [f"{name}={value}" for name, value in sorted(run.spec["method_settings"].items())]
    label = str(run.spec.get("tags", {}).get("label", " ".join([run.spec["method"], *changed])))
    return label.replace(",", "").replace(" ", "-").replace("/", "-")


def _id_of(run: Run) -> str:
    """The first bsuite id of the environment that a run without variants was trained on."""
    name, settings = str(run.spec["env"]), run.spec["env_settings"]
    config = environment_config(name, **settings)
    for bsuite_id, variant in domain_sweep(name.removeprefix(PREFIX)).items():
        if _unpadded(config) == _unpadded(variant):
            return bsuite_id
    raise _no_variant(run, config)


def _refuse_other_tasks(run: Run) -> None:
    """Members that are not on the variant of bsuite that they are called after, but on a shorter one, say."""
    for variant in run.spec.get("variants", ()):
        config = environment_config(str(run.spec["env"]), **{**run.spec["env_settings"], **variant["env_settings"]})
        if _unpadded(config) != _unpadded(SWEEP[variant["labels"]["bsuite_id"]]):
            raise _no_variant(run, config)


def _unpadded(config: Any) -> Any:
    """A configuration without what only makes episodes or observations of several variants the same size."""
    return dataclasses.replace(config, **{name: 0 for name in PADDING if name in values_of(config)})


def _no_variant(run: Run, config: Any) -> PaircreditError:
    return PaircreditError(
        f"The run {run.path} is on none of the {len(SWEEP)} variants of bsuite, so it has no place in its logs: "
        f"{config}."
    )
