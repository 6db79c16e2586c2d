"""The manifest of a run: what is run, where its numbers come from, how far it came; protected by its own sum."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import jax

import paircredit
from paircredit.errors import PaircreditError
from paircredit.runs.files import exists_already, read_file
from paircredit.runs.shape import Count, has_its_sum, json_sum, misfit, parse_json, short

FORMAT = 1
LEARNER_FORMAT = 1
MANIFEST, METRICS, ARRAYS, LEARNER = "manifest.json", "metrics.jsonl", "arrays.npz", "learner.npz"
PACKAGES = ("jax", "jaxlib", "numpy", "equinox")
OF_ENVIRONMENTS = {"ale_py": "ale-py", "gymnasium": "gymnasium", "bsuite": "bsuite"}
"""Modules that some environments are made of, and what their packages are called."""


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


def provenance() -> dict[str, object]:
    """What somebody needs to know to get the same numbers; versions also of what environments have imported so far."""
    device, imported = jax.devices()[0], [name for module, name in OF_ENVIRONMENTS.items() if module in sys.modules]
    return {
        "paircredit": paircredit.__version__,
        "commit": _commit(),
        "python": platform.python_version(),
        "versions": {package: metadata.version(package) for package in (*PACKAGES, *imported)},
        "device": {
            "platform": device.platform,
            "kind": device.device_kind,
            "count": jax.device_count(),
            "cpu_cores": os.cpu_count(),
            "machine": platform.machine(),
        },
    }


@functools.cache
def _commit() -> str:
    """The commit the package runs from, with `+changes` where the tree differs from it, or `unknown`.

    A copy without its history says it in the variable PAIRCREDIT_COMMIT.
    """
    if told := os.environ.get("PAIRCREDIT_COMMIT"):
        return told

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", "-C", str(Path(paircredit.__file__).parent), *words], capture_output=True, text=True, check=True
        ).stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no")
        return git("rev-parse", "HEAD") + ("+changes" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def manifest_bytes(manifest: Mapping[str, Any]) -> bytes:
    """A manifest with its sum, as a file."""
    return (json.dumps({**manifest, "sha256": json_sum(manifest)}, indent=1) + "\n").encode()


def read_manifest(path: Path, what: str = "the manifest of a run", shape: type = RunManifest) -> dict[str, Any]:
    """A manifest whose sum is right and whose fields are those of a dataclass; `what` is said of one that is not."""
    content = read_file(path)
    try:
        manifest = parse_json(content)
    except ValueError as error:
        raise PaircreditError(f"{path} is damaged: it is not JSON ({error}).") from error
    if not isinstance(manifest, dict) or "format" not in manifest:
        raise PaircreditError(f"{path} is not {what}.")
    if manifest["format"] != FORMAT:
        raise PaircreditError(f"{path} has format {manifest['format']!r}; this version reads format {FORMAT}.")
    if not has_its_sum(manifest):
        raise PaircreditError(f"{path} is damaged: its content does not match its own SHA-256 sum.")
    found = misfit(manifest, shape)
    if found is None and shape is RunManifest:
        found = misfit(manifest, _ALSO.get(manifest["status"], RunManifest))
    if found is not None:
        raise PaircreditError(f"{path} is not {what}: {found}.")
    return manifest


def own_manifest(path: Path, kind: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest of a run folder that holds this very run; one that holds something else is refused."""
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


def first_difference(there: Any, here: Any, name: str = "") -> str | None:
    """Where two JSON values differ first, in words; None where they do not."""
    parts: Iterable[tuple[Any, Any, str]]
    if isinstance(there, dict) and isinstance(here, dict):
        inside = f"{name}." if name else ""
        parts = ((there.get(key), here.get(key), inside + key) for key in {**here, **there})
    elif isinstance(there, list) and isinstance(here, list) and len(there) == len(here):
        parts = ((a, b, f"{name}[{i}]") for i, (a, b) in enumerate(zip(there, here, strict=True)))
    else:
        return None if there == here else f"{name.removeprefix('spec.')} is {short(there)} there and {short(here)} here"
    return next((found for part in parts if (found := first_difference(*part))), None)
