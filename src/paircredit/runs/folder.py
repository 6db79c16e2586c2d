"""The run folder: how a run is written down so that nothing is overwritten and damage is noticed.

RUN/manifest.json      what was run, with what, how long; sizes and SHA-256 sums of the other files; its own sum
RUN/metrics.jsonl      one JSON object a line, appended once per chunk
RUN/arrays.npz         learned weights, also over training, and other arrays, without pickle
RUN/learner.npz        where policies are networks: the parameters of the first member
RUN/checkpoint-N.npz   while it runs: the state after N updates; the last two are kept
RUN/lock               while it runs: held by the process that writes
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from paircredit.errors import NotEnoughMemoryError, PaircreditError
from paircredit.runs.checkpoint import (
    Checkpoint,
    Position,
    checkpoint_files,
    read_checkpoint,
    write_checkpoint,
)
from paircredit.runs.files import (
    LOCK,
    PARTIAL,
    FolderLock,
    make_folder,
    open_regular,
    read_file,
    told_as_sentence,
    whole_file,
    write_file,
)
from paircredit.runs.manifest import (
    ARRAYS,
    FORMAT,
    LEARNER,
    LEARNER_FORMAT,
    MANIFEST,
    METRICS,
    manifest_bytes,
    own_manifest,
    provenance,
)
from paircredit.runs.read import read_run
from paircredit.runs.shape import json_sum
from paircredit.runs.trees import DamagedFile, flatten, write_archive
from paircredit.types import PyTree


class RunWriter:
    """Writes one run folder, alone: makes it and says in it what is about to run, or goes on with an unfinished one.

    As a context manager it writes into the manifest why a run failed, and lets go of the folder at the end. A folder
    that holds something else, is being written, or has checkpoints none of which can be used is refused.

    Args:
        path: the folder.
        kind: what the run is (`training`, `umbrella-variance`, …).
        spec: what exactly is run, as JSON.
        go_on: take a folder that exists, if this very run in it is unfinished.
        inputs: a sum of all that is not in the spec and makes a difference, so that what goes on is the same.
        like: makes a tree of the structure of the states in checkpoints; without it the run starts over.
        not_exact: why the run, if it goes on, is not the one that it would have been without a stop; it is put on
            record in the manifest and in the notes.
        settings: all settings as they were, also those that the spec leaves to defaults: for the record only.

    Attributes:
        path: the folder.
        resumed: the checkpoint that the run goes on from; None at its beginning.
        notes: sentences for whoever resumed the run, about checkpoints that could not be used or are not there.
    """

    def __init__(
        self,
        path: Path,
        kind: str,
        spec: Mapping[str, Any],
        *,
        go_on: bool = False,
        inputs: str = "",
        like: Callable[[], PyTree] | None = None,
        not_exact: str = "",
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.path = path
        self.resumed: Checkpoint | None = None
        self.notes: list[str] = []
        self._inputs, self._spec_sum, self._not_exact = inputs, json_sum([kind, dict(spec)]), not_exact
        self._metrics_sum, self._metrics_bytes = hashlib.sha256(), 0
        self._began = time.monotonic()
        self._checkpoints, self._checkpoint_seconds = 0, 0.0
        if go_on and path.exists():
            own_manifest(path, kind, spec)
            self._lock = FolderLock(path)
            try:
                self._go_on(own_manifest(path, kind, spec), like)
            except BaseException:
                self._lock.release()
                raise
            return
        self._manifest: dict[str, Any] = {
            "format": FORMAT,
            "kind": kind,
            "spec": dict(spec),
            "status": "running",
            "started": _now(),
            "provenance": provenance(),
            **({} if settings is None else {"settings": dict(settings)}),
        }
        make_folder(path, {MANIFEST: manifest_bytes(self._manifest)})
        self._lock = FolderLock(path)

    def __enter__(self) -> RunWriter:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        # What was too large never began: the folder is free for a better try.
        never_began = (
            isinstance(error, NotEnoughMemoryError) and self.resumed is None and not (self.path / METRICS).exists()
        )
        try:
            if never_began:
                (self.path / MANIFEST).unlink(missing_ok=True)
            elif isinstance(error, PaircreditError):
                self.fail(str(error))
        finally:
            self._lock.release()
        if never_began:
            with contextlib.suppress(OSError):  # it holds what is not ours
                self.path.rmdir()

    @property
    def seconds(self) -> float:
        """What the run has taken so far, without work that was lost."""
        before = self.resumed.position.seconds if self.resumed else 0.0
        return before + time.monotonic() - self._began

    def append(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append metrics, one JSON object a line."""
        lines = "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows).encode()
        path = self.path / METRICS
        with told_as_sentence(path, "written"), open_regular(path, "ab") as file:
            file.write(lines)
        self._metrics_sum.update(lines)
        self._metrics_bytes += len(lines)

    def save(self, updates: int, state: PyTree, kept: Mapping[str, np.ndarray] | None = None) -> None:
        """Write a checkpoint after this many updates, whose metrics have been appended; `kept` are further arrays."""
        began = time.monotonic()
        self._sync_metrics()
        position = Position(
            updates=updates,
            seconds=round(self.seconds, 2),
            metrics_bytes=self._metrics_bytes,
            metrics_sha256=self._metrics_sum.hexdigest(),
            spec_sha256=self._spec_sum,
            inputs_sha256=self._inputs,
            checkpoints=self._checkpoints + 1,
            checkpoint_seconds=round(self._checkpoint_seconds, 3),
        )
        write_checkpoint(self.path, Checkpoint(position, state, dict(kept or {})))
        self._checkpoints += 1
        self._checkpoint_seconds += time.monotonic() - began

    def finish(
        self, arrays: Mapping[str, np.ndarray] | None = None, learner: PyTree | None = None, **results: Any
    ) -> None:
        """Write arrays and learner, close the manifest with sums, seconds and results, remove what a resume needs."""
        if arrays:
            buffer = io.BytesIO()
            np.savez_compressed(buffer, **dict(arrays))  # type: ignore[arg-type]
            write_file(self.path / ARRAYS, buffer.getvalue())
        if learner is not None:
            leaves, dtypes = flatten("", learner)
            with whole_file(self.path / LEARNER) as file:
                write_archive(file, {"format": LEARNER_FORMAT, "dtypes": dtypes}, leaves)
        self._sync_metrics()
        files = {}
        for name in (METRICS, ARRAYS, LEARNER):
            if (self.path / name).exists():
                content = read_file(self.path / name)
                files[name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        self._record(
            status="finished",
            seconds=round(self.seconds, 2),
            checkpoints={"written": self._checkpoints, "seconds": round(self._checkpoint_seconds, 3)},
            files=files,
            results=results,
        )
        _tidy(self.path)
        self._lock.release()

    def fail(self, reason: str) -> None:
        """Say in the manifest why the run stopped."""
        self._record(status="failed", reason=reason)

    def _go_on(self, manifest: dict[str, Any], like: Callable[[], PyTree] | None) -> None:
        """Find the newest good checkpoint, cut what came after it, and put the resumption on record."""
        if manifest["status"] == "finished":
            raise PaircreditError(f"The run {self.path} is finished already.")
        self.resumed = self._newest(like)
        updates = self.resumed.position.updates if self.resumed else 0
        if self.resumed:
            position = self.resumed.position
            self._checkpoints, self._checkpoint_seconds = position.checkpoints, position.checkpoint_seconds
        self._cut_metrics(self.resumed.position.metrics_bytes if self.resumed else 0)
        own = provenance()
        entry = {"time": _now(), "updates": updates}
        entry |= {"provenance": own} if own != manifest["provenance"] else {}
        entry |= {"refused": list(self.notes)} if self.notes else {}
        if self.resumed is not None and self._not_exact:
            entry["not_exact"] = self._not_exact
            self.notes.append(self._not_exact)
        if self.resumed is None:
            self.notes.append(f"The run {self.path} was stopped before its first checkpoint and starts over.")
        manifest.pop("reason", None)
        self._manifest = manifest
        self._record(status="running", resumptions=[*manifest.get("resumptions", ()), entry])

    def _newest(self, like: Callable[[], PyTree] | None) -> Checkpoint | None:
        """The newest checkpoint that is whole and belongs to the metrics; None where none was ever written."""
        files = checkpoint_files(self.path) if like is not None else []
        if not files or like is None:
            return None
        metrics = self._metrics()
        structure = like()
        for _, file in files:
            try:
                checkpoint = read_checkpoint(file, structure)
                position = checkpoint.position
                if hashlib.sha256(metrics[: position.metrics_bytes]).hexdigest() != position.metrics_sha256:
                    raise DamagedFile(
                        f"{self.path / METRICS} does not begin with the {position.metrics_bytes} bytes that were there "
                        f"when {file.name} was made."
                    )
            except DamagedFile as error:
                self.notes.append(str(error))
                continue
            if (position.spec_sha256, position.inputs_sha256) != (self._spec_sum, self._inputs):
                raise PaircreditError(
                    f"{file} was made with other numbers than this version of the program and its files give for the "
                    "same spec (presets or weights to start from have changed); go on with what the run began with, "
                    "or remove its folder and start it anew."
                )
            return checkpoint
        reasons = " and ".join(sentence.rstrip(".") for sentence in self.notes)
        raise PaircreditError(f"The run {self.path} cannot go on: {reasons}; remove the folder and start it anew.")

    def _cut_metrics(self, length: int) -> None:
        self._metrics_bytes = length
        self._metrics_sum.update(self._metrics()[:length])
        with told_as_sentence(self.path, "written"):
            if (self.path / METRICS).exists():
                os.truncate(self.path / METRICS, length)
            for name in (ARRAYS, LEARNER):
                (self.path / name).unlink(missing_ok=True)

    def _metrics(self) -> bytes:
        path = self.path / METRICS
        return read_file(path) if os.path.lexists(path) else b""

    def _sync_metrics(self) -> None:
        """What a checkpoint or a manifest counts on must be on the disk before it."""
        if (self.path / METRICS).exists():
            with open_regular(self.path / METRICS, "r+b") as file:
                os.fsync(file.fileno())

    def _record(self, **fields: Any) -> None:
        """Write the manifest with these fields."""
        self._manifest |= fields
        write_file(self.path / MANIFEST, manifest_bytes(self._manifest))


def finished_already(path: Path, kind: str, spec: Mapping[str, Any]) -> bool:
    """Whether a folder holds this very run, finished; one that holds something else, or is damaged, is refused."""
    if not path.exists() or own_manifest(path, kind, spec)["status"] != "finished":
        return False
    run = read_run(path)
    for name in run.manifest["files"]:
        run.checked(name)
    _tidy(path)
    return True


def _tidy(path: Path) -> None:
    """Remove what a finished run no longer needs."""
    for file in (*(file for _, file in checkpoint_files(path)), *path.glob(f"*{PARTIAL}"), path / LOCK):
        with contextlib.suppress(OSError):  # somebody was faster, or nobody may write here; it does no harm
            file.unlink()


def rounded(value: float) -> float:
    """A number for a metrics file: seven digits say all that float32 knows."""
    return float(f"{value:.7g}") if math.isfinite(value) else value


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
