"""Reading run folders back, one by one or by SQL: a damaged one is refused, never half-read."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import io
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from paircredit.errors import PaircreditError
from paircredit.runs.files import PARTIAL, read_file
from paircredit.runs.manifest import ARRAYS, LEARNER, LEARNER_FORMAT, MANIFEST, METRICS, read_manifest
from paircredit.runs.shape import parse_row
from paircredit.runs.trees import read_archive, unflatten
from paircredit.types import PyTree

_PARTS_OF_RULES = (".contribution", ".redistributed_value", ".predictor", ".largest", ".quality")


@dataclasses.dataclass(frozen=True)
class Run:
    """A run on disk; the files of a finished one are checked against their sums when they are read.

    One that was stopped or is still running has no sums yet, and nothing but its metrics to read.
    """

    path: Path
    manifest: dict[str, Any]

    @property
    def kind(self) -> str:
        return str(self.manifest["kind"])

    @property
    def spec(self) -> dict[str, Any]:
        return dict(self.manifest["spec"])

    @property
    def name(self) -> str:
        return str(self.spec["name"])

    @property
    def results(self) -> dict[str, Any]:
        return dict(self.manifest["results"])

    @property
    def finished(self) -> bool:
        return bool(self.manifest["status"] == "finished")

    @property
    def begun(self) -> bool:
        """Whether it has not failed and has written metrics."""
        return self.manifest["status"] != "failed" and (self.path / METRICS).exists() and bool(self.checked(METRICS))

    def metrics(self) -> list[dict[str, Any]]:
        """All rows of metrics.jsonl."""
        return list(self._rows())

    def _rows(self) -> Iterator[dict[str, Any]]:
        content = self.checked(METRICS)
        try:
            for line in content.decode().splitlines():
                yield parse_row(line)
        except ValueError as error:
            raise PaircreditError(f"{self.path / METRICS} is damaged: not every line of it is a row.") from error

    @functools.cached_property
    def columns(self) -> dict[str, np.ndarray]:
        """The same as an array per column of the first row, read once for all who look at this run."""
        rows = self._rows()
        columns = {name: [value] for name, value in next(rows, {}).items()}
        for row in rows:  # into lists at once, because rows take many times the room of their columns
            if not row.keys() >= columns.keys():
                raise PaircreditError(
                    f"The metrics of {self.path} hold a line that is no row of a training: {str(row)[:80]}."
                )
            for name, column in columns.items():
                column.append(row[name])
        return {name: np.array(column) for name, column in columns.items()}

    def arrays(self) -> dict[str, np.ndarray]:
        """All arrays of arrays.npz, which is read once."""
        return dict(self._arrays)

    @functools.cached_property
    def _arrays(self) -> dict[str, np.ndarray]:
        return read_arrays(self.checked(ARRAYS), self.path / ARRAYS)

    def learner(self, like: PyTree) -> PyTree:
        """The tree in learner.npz, if it is like the given one: of its structure, shapes and types."""
        path = self.path / LEARNER
        if LEARNER not in self.manifest["files"]:
            raise PaircreditError(
                f"The run {self.path} has no {LEARNER}, which older versions did not write and tables do not need; "
                "train it again with this version."
            )
        header, arrays = read_archive(io.BytesIO(self.checked(LEARNER)), path, LEARNER_FORMAT)
        arrays = {_present_name(name): array for name, array in arrays.items()}
        types = {_present_name(name): dtype for name, dtype in header["dtypes"].items()}
        advice = "read it with the version that made it, or train it again"
        return unflatten("", like, arrays, types, path, advice)

    def checked(self, name: str) -> bytes:
        """The content of a file, if it is what the manifest says it is; of an unfinished run, its metrics so far."""
        if not self.finished:
            if name != METRICS:
                raise PaircreditError(f"The run {self.path} has no {name} before it is finished.")
            return self._lines_so_far
        path, expected = self.path / name, self.manifest["files"].get(name)
        if expected is None:
            raise PaircreditError(f"The run {self.path} has no {name}.")
        content = read_file(path)
        if hashlib.sha256(content).hexdigest() != expected["sha256"]:
            raise PaircreditError(
                f"{path} is damaged: its {len(content)} bytes are not the {expected['bytes']} that were written. "
                "Remove the run's folder and give the command that made it again."
            )
        return content

    @functools.cached_property
    def _lines_so_far(self) -> bytes:
        """Of the metrics, without one that is about to be written; read once, so that all who look see the same."""
        content = read_file(self.path / METRICS)
        return content[: content.rfind(b"\n") + 1]


def _present_name(name: str) -> str:
    """The path of an array in a learner, which earlier versions wrote without `.own` before parts of a rule."""
    return f".own{name}" if name.startswith(_PARTS_OF_RULES) else name


def read_run(path: Path) -> Run:
    """One run folder; one that is not there, damaged, unfinished, or of another format is refused."""
    manifest = read_manifest(path / MANIFEST)
    if manifest["status"] == "failed":
        raise PaircreditError(f"The run {path} failed: {manifest['reason']}")
    if manifest["status"] != "finished":
        raise PaircreditError(
            f"The run {path} is not finished (it was stopped or is still running); go on with "
            f"`paircredit resume {shlex.quote(str(path))}`."
        )
    return Run(path, manifest)


def find_runs(folder: Path, finished_only: bool = False, so_far: bool = False) -> list[Run]:
    """All runs in or below a folder, in order of their paths; a folder without runs that can be read is refused.

    Args:
        folder: where to look.
        finished_only: leave out runs that were stopped, have failed, or are still running.
        so_far: take those of them that have not failed and have written metrics, and leave out the others.
    """
    if not folder.is_dir():
        raise PaircreditError(f"There is no folder {folder}.")
    paths = run_folders(folder)
    if not paths:
        raise PaircreditError(
            f"There are no runs in {folder}; make some with `paircredit reproduce` or `paircredit train`."
        )
    refuse_headless_runs(folder)
    found = [Run(path, read_manifest(path / MANIFEST)) for path in paths]
    if finished_only or so_far:
        found = [run for run in found if run.finished or (so_far and run.begun)]
    if not found:
        shown = ", or has metrics that can be shown" if so_far else ""
        raise PaircreditError(f"Of {len(paths)} runs in {folder} none is finished{shown}.")
    return [run if run.finished or so_far else read_run(run.path) for run in found]


def refuse_headless_runs(folder: Path) -> None:
    """Refuse a folder in which a run has lost its manifest: it would be passed over."""
    headless = [path.parent for path in sorted(folder.rglob(METRICS)) if not (path.parent / MANIFEST).exists()]
    if headless:
        raise PaircreditError(
            f"{headless[0]} has a {METRICS} and no {MANIFEST}, so that nobody can tell what it is; put the one back, "
            "or remove the folder."
        )


def run_folders(folder: Path) -> list[Path]:
    """All run folders in or below a folder, finished or not, in order of their paths."""
    paths = sorted(manifest.parent for manifest in folder.rglob(MANIFEST))
    return [path for path in paths if not path.name.endswith(PARTIAL)]


def query_metrics(runs: Sequence[Run], sql: str) -> dict[str, np.ndarray]:
    """An array per column of what DuckDB answers; every metrics file is checked against its sum first.

    The query is over the table `metrics`, which has a column `run` (the run's name) beside those of the rows.
    """
    try:
        import duckdb  # here and not above: training runs on machines that do not have it
    except ImportError as error:
        raise PaircreditError("SQL over metrics needs DuckDB: pip install 'paircredit[sql]'.") from error
    for run in runs:
        run.checked(METRICS)
    given = {"files": [str(run.path / METRICS) for run in runs], "names": [run.name for run in runs]}
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE metrics AS SELECT $names[list_position($files, filename)] AS run, * EXCLUDE (filename) "
            "FROM read_json($files, format = 'newline_delimited', filename = true, union_by_name = true)",
            given,
        )
        return {name: np.asarray(column) for name, column in connection.execute(sql).fetchnumpy().items()}


def read_arrays(content: bytes, path: Path) -> dict[str, np.ndarray]:
    """The arrays of an npz file; that of an npy file has the name ''. Pickled objects are refused."""
    try:
        file = np.load(io.BytesIO(content), allow_pickle=False)
        return {"": file} if isinstance(file, np.ndarray) else {name: file[name] for name in file.files}
    except Exception as error:  # whatever NumPy and zip make of bytes that are none of theirs
        reason = " ".join(str(error).split()) or type(error).__name__
        if "pickle" in reason:  # NumPy's advice how to load it all the same is none
            reason = "it is of another kind, or holds objects that are no arrays"
        raise PaircreditError(
            f"{path} is not a readable npy or npz file of plain arrays: {reason.rstrip('.')}."
        ) from error
