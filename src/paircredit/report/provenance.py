"""What the report says about where its numbers come from."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from paircredit.runs.read import Run


@dataclasses.dataclass(frozen=True)
class Source:
    """A run as a row of the report.

    Attributes:
        name: of the run.
        what: its method, or what kind of run it is.
        seeds: of its members.
        updates: how many, or None where nothing is trained.
        seconds: it took, or None where it is not finished.
        device: it ran on.
        commit: it ran from.
        versions: number of its set of versions, from 1.
    """

    name: str
    what: str
    seeds: str
    updates: int | None
    seconds: float | None
    device: str
    commit: str
    versions: int


def sources(runs: Sequence[Run]) -> tuple[list[Source], list[str]]:
    """A row per run, and the distinct sets of versions that the rows count from 1."""
    sets: list[str] = []
    rows = []
    for run in runs:
        origin = run.manifest["provenance"]
        versions = _versions(origin)
        if versions not in sets:
            sets.append(versions)
        rows.append(
            Source(
                name=run.name,
                what=run.spec.get("method", run.kind),
                seeds=_seeds(run.spec),
                updates=run.spec.get("updates"),
                seconds=float(run.manifest["seconds"]) if run.finished else None,
                device=_device(origin["device"]),
                commit=origin["commit"],
                versions=sets.index(versions) + 1,
            )
        )
    return rows, sets


def first_and_last_day(runs: Sequence[Run]) -> tuple[str, str]:
    """The days on which the first and the last of the runs began."""
    days = sorted(run.manifest["started"][:10] for run in runs)
    return days[0], days[-1]


def _seeds(spec: dict[str, Any]) -> str:
    seeds = spec.get("seeds") or ([spec["seed"]] if "seed" in spec else [])
    if not seeds:
        return "–"
    first, last = min(seeds), max(seeds)
    if first == last:
        text = str(first)
    elif sorted(seeds) == list(range(first, last + 1)):
        text = f"{first}–{last}"
    else:
        text = ", ".join(str(seed) for seed in seeds)
    masks = spec.get("value_masks")
    return f"{text}, for each of the masks {', '.join(str(mask) for mask in masks)}" if masks else text


def _device(device: dict[str, Any]) -> str:
    if device["platform"] == "cpu":
        return f"CPU, {device['cpu_cores']} cores, {device['machine']}"
    return f"{device['count']} × {device['kind']}"


def _versions(origin: dict[str, Any]) -> str:
    """With the whole commit, which is too long for a row."""
    packages = {"paircredit": origin["paircredit"], "Python": origin["python"], **origin["versions"]}
    return ", ".join(f"{name} {version}" for name, version in packages.items()) + f"; commit {origin['commit']}"
