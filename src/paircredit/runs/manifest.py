"""The manifest of a run: what is run, with what, how far it came; protected by its own sum."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paircredit.errors import PaircreditError
from paircredit.runs.files import exists_already

FORMAT = 1
LEARNER_FORMAT = 1
MANIFEST, METRICS, ARRAYS, LEARNER = "manifest.json", "metrics.jsonl", "arrays.npz", "learner.npz"


def body_sum(manifest: Mapping[str, Any]) -> str:
    """The SHA-256 sum of a manifest without its own sum."""
    body = {key: value for key, value in manifest.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(body, sort_keys=True, allow_nan=False).encode()).hexdigest()


def manifest_bytes(manifest: Mapping[str, Any]) -> bytes:
    """A manifest with its sum, as a file."""
    return (json.dumps({**manifest, "sha256": body_sum(manifest)}, indent=1) + "\n").encode()


def read_manifest(
    path: Path, what: str = "the manifest of a run", keys: tuple[str, ...] = ("kind", "spec", "status")
) -> dict[str, Any]:
    """A manifest whose sum is right.

    Args:
        path: the file.
        what: it should be.
        keys: what it then has.

    Raises:
        PaircreditError: it is not there, damaged, or of another format.
    """
    try:
        manifest = json.loads(path.read_bytes())
    except OSError as error:
        raise PaircreditError(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise PaircreditError(f"{path} is damaged: it is not JSON ({error}).") from error
    if not isinstance(manifest, dict) or "format" not in manifest:
        raise PaircreditError(f"{path} is not {what}.")
    if manifest["format"] != FORMAT:
        raise PaircreditError(f"{path} has format {manifest['format']!r}; this version reads format {FORMAT}.")
    try:
        whole = manifest.get("sha256") == body_sum(manifest)
    except ValueError:  # a number that is none, which nobody has written
        whole = False
    if not whole:
        raise PaircreditError(f"{path} is damaged: its content does not match its own SHA-256 sum.")
    closed = ("files", "results") if manifest.get("status") == "finished" else ()
    if not all(key in manifest for key in (*keys, *closed)):
        raise PaircreditError(f"{path} is not {what}.")
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
