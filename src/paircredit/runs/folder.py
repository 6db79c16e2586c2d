"""The run folder: how a run is written down so that nothing is overwritten and damage is noticed.

RUN/manifest.json   what was run, with what, how long; sizes and SHA-256 sums of the other files; its own sum
RUN/metrics.jsonl   one JSON object a line, appended once per chunk
RUN/arrays.npz      learned weights, also over training, and other arrays, without pickle
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from paircredit.errors import PaircreditError
from paircredit.runs.provenance import provenance

FORMAT = 1
MANIFEST, METRICS, ARRAYS = "manifest.json", "metrics.jsonl", "arrays.npz"


def make_folder(path: Path) -> None:
    """Make a new folder; one that exists is never written into."""
    if path.exists():
        raise PaircreditError(f"{path} exists already; choose another folder or remove it first.")
    try:
        path.mkdir(parents=True)
    except OSError as error:
        raise PaircreditError(f"{path} cannot be made: {error.strerror}.") from error


def write_file(path: Path, content: bytes) -> None:
    """Write a whole file so that it is there complete or not at all."""
    temporary = path.with_name(path.name + ".partial")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise PaircreditError(f"{path} cannot be written: {error.strerror}.") from error


def body_sum(manifest: Mapping[str, Any]) -> str:
    """The SHA-256 sum of a manifest without its own sum."""
    body = {key: value for key, value in manifest.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(body, sort_keys=True, allow_nan=False).encode()).hexdigest()


class RunWriter:
    """Writes one run folder."""

    def __init__(self, path: Path, kind: str, spec: Mapping[str, Any]) -> None:
        """Make the folder and say in it what is about to run.

        Args:
            path: the folder, which must not exist.
            kind: what the run is (`training`, `umbrella-variance`, …).
            spec: what exactly is run, as JSON.
        """
        make_folder(path)
        self.path = path
        self._began = time.monotonic()
        self._manifest: dict[str, Any] = {
            "format": FORMAT,
            "kind": kind,
            "spec": dict(spec),
            "status": "running",
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "provenance": provenance(),
        }
        self._write_manifest()

    def append(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append metrics, one JSON object a line."""
        lines = "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows)
        try:
            with open(self.path / METRICS, "ab") as file:
                file.write(lines.encode())
        except OSError as error:
            raise PaircreditError(f"{self.path / METRICS} cannot be written: {error.strerror}.") from error

    def finish(self, arrays: Mapping[str, np.ndarray] | None = None, **results: Any) -> None:
        """Write the arrays and close the manifest with sums, seconds and results.

        Args:
            arrays: what goes into arrays.npz.
            results: small JSON values that belong into the manifest.
        """
        if arrays:
            buffer = io.BytesIO()
            np.savez_compressed(buffer, **dict(arrays))  # type: ignore[arg-type]
            write_file(self.path / ARRAYS, buffer.getvalue())
        files = {}
        for name in (METRICS, ARRAYS):
            if (self.path / name).exists():
                content = (self.path / name).read_bytes()
                files[name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        self._manifest |= {
            "status": "finished",
            "seconds": round(time.monotonic() - self._began, 2),
            "files": files,
            "results": results,
        }
        self._write_manifest()

    def fail(self, reason: str) -> None:
        """Say in the manifest why the run stopped."""
        self._manifest |= {"status": "failed", "reason": reason}
        self._write_manifest()

    def _write_manifest(self) -> None:
        self._manifest["sha256"] = body_sum(self._manifest)
        write_file(self.path / MANIFEST, (json.dumps(self._manifest, indent=1) + "\n").encode())


def rounded(value: float) -> float:
    """A number for a metrics file: seven digits say all that float32 knows."""
    return float(f"{value:.7g}") if math.isfinite(value) else value
