"""What the command line makes of runs, as numbers: verdicts, tables, digests, and the data of every figure."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from paircredit.cli import main
from tests.golden.suites import SUITES

FILES = Path(__file__).parent / "files"


@contextmanager
def figures_instead_of_files() -> Iterator[list[Figure]]:
    """Whatever is drawn is kept, and the file says which of these it is: nothing is rendered."""
    kept: list[Figure] = []

    def savefig(figure: Figure, file: Any, **_: Any) -> None:
        kept.append(figure)
        text = f"<svg number {len(kept) - 1}>"
        file.write(text if isinstance(file, io.StringIO) else text.encode())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "savefig", savefig)
        yield kept


def results_of(suite: str, folder: Path) -> dict[str, Any]:
    """All results of a suite of runs, as JSON."""
    SUITES[suite](folder / "runs")
    with figures_instead_of_files() as kept:
        code, said = _call("claims", folder / "runs")
        result: dict[str, Any] = {"claims": [code, *said.splitlines()]}
        _call("digest", folder / "runs", "--out", folder / "digest")
    for path in sorted((folder / "digest").rglob("*")):
        name = path.relative_to(folder / "digest").as_posix()
        if path.suffix == ".svg":
            number = int(path.read_text().removeprefix("<svg number ").removesuffix(">"))
            result[name.removesuffix(".svg")] = figure_data(kept[number])
        elif path.suffix == ".csv":
            result[name] = table_data(path.read_text())
        elif path.suffix == ".npz":
            with np.load(path) as arrays:
                result[name] = {key: numbers(arrays[key]) for key in sorted(arrays.files)}
    if suite == "bsuite":
        _call("export", "bsuite", folder / "runs" / "single", "--out", folder / "logs")
        for path in sorted((folder / "logs").rglob("*.csv")):
            result[f"logs/{path.relative_to(folder / 'logs').as_posix()}"] = table_data(path.read_text())
    return result


def _call(*words: object) -> tuple[int, str]:
    said, error = io.StringIO(), io.StringIO()
    with redirect_stdout(said), redirect_stderr(error):
        code = main([str(word) for word in words])
    assert code in (0, 1), error.getvalue()
    return code, said.getvalue()


def numbers(values: Any) -> dict[str, Any]:
    """Numbers as their count, three sums and the sum of their bits; what is not finite counts by place alone."""
    array = np.ma.masked_array(values)
    flat = array.filled(np.nan).astype(float).ravel() if array.dtype.kind != "M" else array.astype(float).ravel()
    finite = np.isfinite(flat)
    places = np.arange(1, flat.size + 1) / max(flat.size, 1)
    kept = np.where(finite, flat, 0.0)
    bits = hashlib.sha256(np.ascontiguousarray(flat).tobytes()).hexdigest()[:12]
    sums = [float(f"{x:.12g}") for x in (kept.sum(), np.abs(kept).sum(), kept @ places, finite @ places)]
    return {"shape": list(np.shape(values)), "sums": sums, "bits": bits}


def table_data(text: str) -> Any:
    """A small table as it is; of a large one the texts' sum and the numbers of every column."""
    rows = list(csv.reader(io.StringIO(text)))
    if len(rows) <= 30:
        return rows
    columns: dict[str, Any] = {}
    for place, name in enumerate(rows[0]):
        cells = [row[place] for row in rows[1:]]
        try:
            columns[name] = numbers([float(cell) if cell else math.nan for cell in cells])
        except ValueError:
            columns[name] = hashlib.sha256("\n".join(cells).encode()).hexdigest()[:12]
    return columns


def figure_data(figure: Figure) -> dict[str, Any]:
    """What is drawn, without how it is laid out."""
    texts = [figure.get_suptitle(), figure.get_supxlabel(), figure.get_supylabel()]
    legends = [[text.get_text() for text in legend.get_texts()] for legend in figure.legends]
    return {
        "size": [round(float(x), 9) for x in figure.get_size_inches()],
        "texts": [text for text in texts if text],
        "legends": legends,
        "panels": [_panel(axes) for axes in figure.axes if axes.get_visible()],
    }


def _panel(axes: Axes) -> dict[str, Any]:
    lines = sorted(
        (
            [line.get_label(), to_hex(line.get_color()), str(line.get_marker()), numbers(line.get_xydata())]
            for line in axes.lines
        ),
        key=json.dumps,
    )
    shapes: list[Any] = []
    for collection in axes.collections:
        paths = collection.get_segments() if isinstance(collection, LineCollection) else collection.get_paths()
        points = [getattr(path, "vertices", path) for path in paths]
        shapes.append(numbers(np.concatenate(points)) if points else None)
    shapes += [[to_hex(patch.get_facecolor()), numbers(patch.get_path().vertices)] for patch in axes.patches]
    shapes += [numbers([getattr(p, "get_x", float)(), getattr(p, "get_height", float)()]) for p in axes.patches]
    legend = axes.get_legend()
    found = {
        "title": axes.get_title(loc="left"),
        "labels": [axes.get_xlabel(), axes.get_ylabel()],
        "scales": [axes.get_xscale(), axes.get_yscale()],
        "limits": numbers([*axes.get_xlim(), *axes.get_ylim()]),
        "ticks": [numbers(axes.get_xticks()), numbers(axes.get_yticks())],
        "lines": lines,
        "shapes": shapes,
        "images": [[*image.get_clim(), numbers(image.get_array())] for image in axes.images],
        "texts": [
            [text.get_text(), numbers(text.xy if hasattr(text, "xy") else text.get_position())] for text in axes.texts
        ],
        "legend": [text.get_text() for text in legend.get_texts()] if legend else [],
    }
    return {name: value for name, value in found.items() if value}


def as_text(results: dict[str, Any]) -> str:
    """One exhibit a line, so that a change of it is a change of a line."""
    lines = (f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in results.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"
