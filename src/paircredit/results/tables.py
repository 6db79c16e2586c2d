"""Tables of numbers that go with figures: one object for the CSV file and for the report."""

from __future__ import annotations

import csv
import dataclasses
import io
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

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


class Measure(NamedTuple):
    """One or several columns, and what stands in them for a thing that has a row."""

    columns: Sequence[Column]
    of: Callable[[Any], Iterable[Cell]]


def column(name: str, title: str, of: Callable[[Any], Cell], form: str = "") -> Measure:
    """A column with one value of every thing."""
    return Measure([Column(name, title, form)], lambda thing: (of(thing),))


def interval(
    name: str, title: str, of: Callable[[Any], Iterable[Cell]], form: str, *, ends: str | None = None
) -> Measure:
    """Three columns: an estimate, and the ends of its 95 % interval.

    Args:
        name: of the estimate in the CSV file.
        title: for readers.
        of: the three numbers of a thing.
        form: of all three.
        ends: what the names of the ends begin with, where that is not the name.
    """
    first = f"{name}_" if ends is None else ends
    low, high = Column(f"{first}low", "from", form), Column(f"{first}high", "to", form)
    return Measure([Column(name, title, form), low, high], of)


def table(things: Iterable[Any], *measures: Measure) -> Table | None:
    """A row per thing; None where there is none."""
    rows = tuple(tuple(cell for measure in measures for cell in measure.of(thing)) for thing in things)
    return Table(tuple(own for measure in measures for own in measure.columns), rows) if rows else None


def plain_table(names: Sequence[str], rows: Iterable[Iterable[Any]]) -> Table | None:
    """A table for a file alone; None without rows."""
    kept = tuple(tuple(row) for row in rows)
    return Table(tuple(Column(name, name) for name in names), kept) if kept else None


def _text(cell: Cell, form: str) -> str:
    if cell is None:
        return "–"
    if isinstance(cell, str):
        return cell
    if math.isinf(cell):
        return "∞"
    return format(cell, form).replace("-", "−")
