"""What is shown of runs and judged by them: figures, tables, claims and their verdicts; methods as readers see them.

A claim *holds* or *fails* where the runs can tell, and is *not judged* where they cannot. An order between two
methods is contradicted only when the 95 % bootstrap interval of the difference says so: a tie is reported as a tie.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from paircredit.results.intervals import Interval
from paircredit.runs.read import Run

CORE = ("a2c", "h-pwr", "meta-pwr", "meta-pwtd")
"""The paper's own methods, and what they are built on."""
LABELS = (*CORE, "meta-lambda", "rgm", "a2c-rr", "tvt", "synthetic-returns")
"""Methods in the order in which they are shown; others come after them, by name."""
TITLES = {
    "a2c": "A2C",
    "regular": "regular return",
    "h-pwr": "H-PWR",
    "meta-pwr": "Meta-PWR",
    "meta-pwtd": "Meta-PWTD",
    "meta-lambda": "Meta-λ(s)",
    "rgm": "RGM",
    "a2c-rr": "A2C-RR",
    "tvt": "TVT",
    "synthetic-returns": "Synthetic Returns",
}
OF_ERRORS = ("meta-pwtd",)
"""Methods that weigh TD errors instead of rewards."""

Status = Literal["holds", "fails", "not judged"]
Order = Literal["holds", "tie", "contradicted", "open"]
"""Of two methods; open where neither has learned."""

LEAST_SEEDS = 5
"""With fewer nothing is said about an order."""


def title(label: str) -> str:
    """What readers call a method, and what is changed about it; a label that nobody knows is its own title."""
    method = method_of(label)
    return TITLES.get(method, method) + label.removeprefix(method)


def method_of(label: str) -> str:
    """The method of a label, whatever is changed about it."""
    return label.partition(",")[0]


def in_order(labels: set[str]) -> list[str]:
    """Labels of methods in the order in which they are shown."""
    return [label for label in LABELS if label in labels] + sorted(labels.difference(LABELS))


def environment_name(env: str, settings: Mapping[str, Any]) -> str:
    """What an environment is called: its name, but that of the game where a setting names another one."""
    suite, slash, game = env.partition("/")
    return f"{suite}/{settings.get('game', game)}" if slash else env


def order(difference: Interval) -> Order:
    """How two methods stand of which the first should have less: by the interval of its number minus the other's."""
    return "contradicted" if difference.low > 0 else "holds" if difference.high < 0 else "tie"


class Verdict(NamedTuple):
    """What became of a claim: what was measured, or why nothing could be."""

    id: str
    statement: str
    where: str
    status: Status
    measured: str


@dataclasses.dataclass(frozen=True)
class Claim:
    """A claim of the paper, what the paper says and where, and how to judge it."""

    id: str
    statement: str
    where: str
    judge: Callable[[Sequence[Run]], tuple[Status, str]]


def claim(id: str, statement: str, where: str) -> Callable[[Callable[..., tuple[Status, str]]], Claim]:
    """Makes a claim of the function that judges it."""
    return lambda judge: Claim(id, statement, where, judge)


@dataclasses.dataclass(frozen=True)
class Exhibit:
    """A figure or a table, made of runs (None where those that it needs are not there), under the name of its files.

    The caption says what is seen (and what the paper shows there), or what the columns are.
    """

    name: str
    title: str
    caption: str
    make: Callable[[Sequence[Run]], Any]


def exhibit(name: str, title: str, caption: str | None = None, **more: Any) -> Callable[..., Exhibit]:
    """Makes an exhibit of a function of runs and `more`; the caption is the rest of its docstring, if none is given."""

    def made(make: Callable[..., Any]) -> Exhibit:
        told = caption or " ".join(str(make.__doc__).partition("\n")[2].split())
        return Exhibit(name, title, told, functools.partial(make, **more))

    return made


Cell = str | int | float | None


class Column(NamedTuple):
    """A column: its name in the CSV file, which has all digits; title and format of its numbers for readers."""

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
    """Three columns: an estimate, and the ends of its 95 % interval, whose names begin with `ends` or the name."""
    first = f"{name}_" if ends is None else ends
    low, high = Column(f"{first}low", "from", form), Column(f"{first}high", "to", form)
    return Measure([Column(name, title, form), low, high], of)


METHOD = column("method", "method", lambda own: title(own.label))
SEEDS = column("seeds", "seeds", lambda own: len(own.seeds))
"""Columns of things that have a label and seeds, as curves do."""


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
