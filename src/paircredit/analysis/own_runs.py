"""Runs of `paircredit train`, on whichever environment and with whichever method: how they are grouped and named."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from paircredit.analysis.recorded import RETURN, Recorded, recorded
from paircredit.analysis.shown import LABELS, environment_name, runs_of
from paircredit.runs.read import Run, read_run

OWN = "train"
"""The role of such runs."""


@dataclasses.dataclass(frozen=True)
class OwnRun:
    """A run, and what it is called beside others.

    Attributes:
        run: on disk.
        place: its environment; with the settings that differ, where runs are on several of the same name.
        label: its method, and behind a comma what tells it from other runs of the method on the place.
    """

    run: Run
    place: str
    label: str

    @functools.cached_property
    def curves(self) -> dict[str, Recorded]:
        """What it recorded, by quantity, the return first; empty where it recorded too little."""
        found = _read(self.run.path, self.run.manifest["sha256"]) if self.run.finished else recorded(self.run)
        found = found or {}
        return {name: found[name] for name in sorted(found, key=lambda name: name != RETURN)}


def own_runs(runs: Sequence[Run]) -> list[OwnRun]:
    """The runs of `paircredit train`, by environment, method and folder."""
    found = runs_of(runs, OWN)
    if not found:
        return []
    settings = [run.spec["env_settings"] for run in found]
    places = _places([(environment_name(run.spec["env"], own), own) for run, own in zip(found, settings, strict=True)])
    kinds = [(place, run.spec["method"]) for place, run in zip(places, found, strict=True)]
    folders = _short_names([run.path for run in found])
    named = [
        OwnRun(run, place, method if kinds.count((place, method)) == 1 else f"{method}, {folder}")
        for run, (place, method), folder in zip(found, kinds, folders, strict=True)
    ]
    return sorted(named, key=lambda own: (own.place, _rank(own.run.spec["method"]), own.label))


def _rank(method: str) -> int:
    return LABELS.index(method) if method in LABELS else len(LABELS)


def _places(environments: Sequence[tuple[str, dict[str, Any]]]) -> list[str]:
    """Names of environments, with the settings in which those of the same name differ."""
    names = []
    for env, settings in environments:
        others = [other for name, other in environments if name == env]
        differing = [key for key in settings if len({json.dumps(other.get(key)) for other in others}) > 1]
        changes = ", ".join(f"{key} {_text(settings[key])}" for key in differing)
        names.append(f"{env}, {changes}" if changes else env)
    return names


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _short_names(paths: Sequence[Path]) -> list[str]:
    """The names of the folders, with those above them where a name occurs twice."""
    if len({path.name for path in paths}) == len(paths):
        return [path.name for path in paths]
    above = os.path.commonpath([path.resolve() for path in paths])
    return [path.resolve().relative_to(above).as_posix() for path in paths]


@functools.lru_cache(maxsize=256)
def _read(path: Path, manifest_sum: str) -> dict[str, Recorded] | None:
    """What a run recorded; kept, because a report asks several times."""
    del manifest_sum  # says that it is still the same run
    return recorded(read_run(path))
