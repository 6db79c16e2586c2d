"""All figures and tables of some runs, as files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from paircredit.errors import PaircreditError
from paircredit.figures.registry import FIGURES
from paircredit.figures.render import to_png, to_svg
from paircredit.figures.table_registry import TABLES
from paircredit.runs.folder import make_folder, write_file
from paircredit.runs.read import Run


def save_figures(runs: Sequence[Run], folder: Path) -> list[Path]:
    """Draw every figure that can be drawn into a new folder, as SVG and PNG, with CSV tables beside them.

    Args:
        runs: what to draw from.
        folder: where to; it must not exist.

    Returns:
        The files that were written.

    Raises:
        PaircreditError: the folder exists, a run is damaged, or there is no figure for any of the runs.
    """
    make_folder(folder)
    paths = []
    try:
        for name, content in figure_files(runs):
            write_file(folder / name, content)
            paths.append(folder / name)
        if not paths:
            raise PaircreditError(
                "There is no figure of any of these runs: they are too short, no game has ended in them, or they are "
                "of neither `paircredit train` nor `paircredit reproduce`."
            )
    except PaircreditError:
        for path in paths:
            path.unlink()
        folder.rmdir()
        raise
    return paths


def figure_files(runs: Sequence[Run]) -> Iterator[tuple[str, bytes]]:
    """Name and content of every figure and table that the runs allow."""
    for spec in FIGURES:
        figure = spec.draw(runs)
        if figure is not None:
            yield f"{spec.name}.svg", to_svg(figure).encode()
            yield f"{spec.name}.png", to_png(figure)
    for table_spec in TABLES:
        table = table_spec.build(runs)
        if table is not None:
            yield f"{table_spec.name}.csv", table.csv().encode()
