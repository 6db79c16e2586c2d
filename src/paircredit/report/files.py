"""What runs have to show as files: all figures and tables; and a digest that is small enough to be kept for ever."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from paircredit.errors import PaircreditError
from paircredit.results.charts import to_png, to_svg
from paircredit.results.exhibits import Table, Verdict, plain_table
from paircredit.runs.files import exists_already, make_folder
from paircredit.runs.read import Run
from paircredit.studies import STUDIES


def save_figures(runs: Sequence[Run], folder: Path) -> list[Path]:
    """Draw every figure that can be drawn into a new folder, as SVG and PNG, with CSV tables beside them.

    Raises:
        PaircreditError: the folder exists, a run is damaged, or there is no figure for any of the runs.
    """
    if os.path.lexists(folder):
        raise exists_already(folder)
    contents = dict(figure_files(runs))
    if not contents:
        raise PaircreditError(
            "There is no figure of any of these runs: they are too short, no game has ended in them, or they are "
            "of neither `paircredit train` nor `paircredit reproduce`."
        )
    make_folder(folder, contents)
    return [folder / name for name in contents]


def figure_files(runs: Sequence[Run]) -> Iterator[tuple[str, bytes]]:
    """Name and content of every figure and table that the runs allow."""
    for study in STUDIES:
        for exhibit in study.figures:
            figure = exhibit.make(runs)
            if figure is not None:
                yield f"{exhibit.name}.svg", to_svg(figure).encode()
                yield f"{exhibit.name}.png", to_png(figure)
        for exhibit in study.tables:
            table = exhibit.make(runs)
            if table is not None:
                yield f"{exhibit.name}.csv", table.csv().encode()


def write_digest(runs: Sequence[Run], verdicts: Sequence[Verdict], folder: Path) -> list[Path]:
    """Write verdicts, provenance, tables, curves, weights and figures into a folder that must not exist."""
    names = ("id", "status", "measured", "statement", "where")
    judged = [(own.id, own.status, own.measured, own.statement, own.where) for own in verdicts]
    tables: dict[str, Table | None] = {"verdicts.csv": plain_table(names, judged)}
    contents = {"provenance.json": json.dumps([_origin(run) for run in runs], indent=1).encode() + b"\n"}
    weights: dict[str, np.ndarray] = {}
    for study in STUDIES:
        tables |= study.digest(runs)
        weights |= study.weights(runs)
    contents |= {name: table.csv().encode() for name, table in tables.items() if table is not None}
    if weights:
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **weights)  # type: ignore[arg-type]
        contents["weights.npz"] = buffer.getvalue()
    contents |= {f"figures/{name}": content for name, content in figure_files(runs)}
    make_folder(folder, contents)
    return [folder / name for name in contents]


def _origin(run: Run) -> dict[str, object]:
    kept = ("kind", "status", "started", "seconds", "checkpoints", "resumptions", "provenance", "spec", "files")
    return {"name": run.name} | {key: run.manifest[key] for key in kept if key in run.manifest}
