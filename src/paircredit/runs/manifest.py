"""The manifest of a run: what is run, with what, how far it came; protected by its own sum."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from paircredit.errors import PaircreditError
from paircredit.runs.files import exists_already, read_file
from paircredit.runs.shape import Count, misfit, parse_json

FORMAT = 1
LEARNER_FORMAT = 1
MANIFEST, METRICS, ARRAYS, LEARNER = "manifest.json", "metrics.jsonl", "arrays.npz", "learner.npz"


@dataclasses.dataclass(frozen=True)
class NamedSpec:
    """What every spec of a run has."""

    name: str
    tags: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class DeviceRecord:
    """The device in a provenance record."""

    platform: str
    kind: str
    count: Count
    machine: str
    cpu_cores: Count | None


@dataclasses.dataclass(frozen=True)
class ProvenanceRecord:
    """Where a run's numbers come from."""

    paircredit: str
    commit: str
    python: str
    versions: Mapping[str, str]
    device: DeviceRecord


@dataclasses.dataclass(frozen=True)
class RunManifest:
    """The fields of every run's manifest."""

    kind: str
    spec: NamedSpec
    status: Literal["running", "failed", "finished"]
    started: str
    provenance: ProvenanceRecord
    checkpoints: Mapping[str, float] = dataclasses.field(default_factory=dict)
    resumptions: tuple[Mapping[str, Any], ...] = ()
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class FileRecord:
    """Size and sum of a file in a finished run."""

    bytes: Count
    sha256: str


@dataclasses.dataclass(frozen=True)
class FinishedManifest:
    """The further fields of a finished run's manifest."""

    seconds: float
    files: Mapping[str, FileRecord]
    results: Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class FailedManifest:
    """The further field of a failed run's manifest."""

    reason: str


_ALSO: Mapping[Any, type] = {"finished": FinishedManifest, "failed": FailedManifest}


def body_sum(manifest: Mapping[str, Any]) -> str:
    """The SHA-256 sum of a manifest without its own sum."""
    body = {key: value for key, value in manifest.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(body, sort_keys=True, allow_nan=False).encode()).hexdigest()


def manifest_bytes(manifest: Mapping[str, Any]) -> bytes:
    """A manifest with its sum, as a file."""
    return (json.dumps({**manifest, "sha256": body_sum(manifest)}, indent=1) + "\n").encode()


def read_manifest(path: Path, what: str = "the manifest of a run", shape: type = RunManifest) -> dict[str, Any]:
    """A manifest whose sum is right and whose fields are what they should be.

    Args:
        path: the file.
        what: it should be.
        shape: a dataclass of the fields that are looked at.

    Raises:
        PaircreditError: it is not there, damaged, or of another format.
    """
    try:
        manifest = parse_json(read_file(path))
    except PaircreditError:
        raise
    except ValueError as error:
        raise PaircreditError(f"{path} is damaged: it is not JSON ({error}).") from error
    if not isinstance(manifest, dict) or "format" not in manifest:
        raise PaircreditError(f"{path} is not {what}.")
    if manifest["format"] != FORMAT:
        raise PaircreditError(f"{path} has format {manifest['format']!r}; this version reads format {FORMAT}.")
    try:
        whole = manifest.get("sha256") == body_sum(manifest)
    except ValueError:  # an infinite number, which nobody has written
        whole = False
    if not whole:
        raise PaircreditError(f"{path} is damaged: its content does not match its own SHA-256 sum.")
    found = misfit(manifest, shape)
    if found is None and shape is RunManifest:
        found = misfit(manifest, _ALSO.get(manifest["status"], RunManifest))
    if found is not None:
        raise PaircreditError(f"{path} is not {what}: {found}.")
    return manifest


def own_manifest(path: Path, kind: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest of a run folder that holds this very run.

    Raises:
        PaircreditError: the folder holds something else.
    """
    if not (path / MANIFEST).exists():
        raise exists_already(path)
    manifest = read_manifest(path / MANIFEST)
    mine = json.loads(json.dumps({"kind": kind, "spec": dict(spec)}))
    difference = first_difference({"kind": manifest["kind"], "spec": manifest["spec"]}, mine)
    if difference is not None:
        raise PaircreditError(
            f"{path} exists already and holds another run ({difference}); choose another folder or remove it first."
        )
    return manifest


def spec_sum(kind: str, spec: Mapping[str, Any]) -> str:
    """The SHA-256 sum of what is run."""
    return hashlib.sha256(json.dumps([kind, dict(spec)], sort_keys=True).encode()).hexdigest()


def first_difference(there: Any, here: Any, name: str = "") -> str | None:
    """Where two JSON values differ first, in words; None where they do not."""
    if isinstance(there, dict) and isinstance(here, dict):
        for key in {**here, **there}:
            found = first_difference(there.get(key), here.get(key), f"{name}.{key}" if name else key)
            if found is not None:
                return found
        return None
    if isinstance(there, list) and isinstance(here, list) and len(there) == len(here):
        found_ones = (first_difference(a, b, f"{name}[{i}]") for i, (a, b) in enumerate(zip(there, here, strict=True)))
        return next((found for found in found_ones if found is not None), None)
    return None if there == here else f"{name.removeprefix('spec.')} is {_short(there)} there and {_short(here)} here"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "…"
