"""Tables of numbers that go with figures: one object for the CSV file and for the report."""

from __future__ import annotations

import csv
import dataclasses
import io
import math

Cell = str | int | float | None


@dataclasses.dataclass(frozen=True)
class Column:
    """A column.

    Attributes:
        name: in the CSV file.
        title: for readers.
        form: format of its numbers for readers; the CSV file has all digits.
    """

    name: str
    title: str
    form: str = ""


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows under columns; None is an empty cell."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def csv(self) -> str:
        """The table as CSV."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow([column.name for column in self.columns])
        writer.writerows(self.rows)
        return buffer.getvalue()

    def texts(self) -> list[list[str]]:
        """The cells as a reader wants to see them."""
        return [[_text(cell, column.form) for cell, column in zip(row, self.columns, strict=True)] for row in self.rows]


def _text(cell: Cell, form: str) -> str:
    if cell is None:
        return "–"
    if isinstance(cell, str):
        return cell
    if math.isinf(cell):
        return "∞"
    return format(cell, form).replace("-", "−")
