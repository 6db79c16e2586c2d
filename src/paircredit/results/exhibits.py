"""What is shown of runs and judged by them: figures, tables, claims and their verdicts.

A claim *holds* or *fails* where the runs can tell, and is *not judged* where they cannot. An order between two
methods is contradicted only when the 95 % bootstrap interval of the difference says so: a tie is reported as a tie.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Literal

from paircredit.runs.read import Run

Status = Literal["holds", "fails", "not judged"]
Order = Literal["holds", "tie", "contradicted", "open"]
"""Of two methods; open where neither has learned."""

LEAST_SEEDS = 5
"""With fewer nothing is said about an order."""


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What became of a claim.

    Attributes:
        id: of the claim.
        statement: what the paper says.
        where: in the paper.
        status: holds, fails or not judged.
        measured: what was found, or why nothing could be.
    """

    id: str
    statement: str
    where: str
    status: Status
    measured: str


@dataclasses.dataclass(frozen=True)
class Claim:
    """A claim of the paper and how to judge it."""

    id: str
    statement: str
    where: str
    judge: Callable[[Sequence[Run]], tuple[Status, str]]


@dataclasses.dataclass(frozen=True)
class Exhibit:
    """A figure or a table.

    Attributes:
        name: of its files and of its place in the report.
        title: a few words.
        caption: what is seen (and what the paper shows there), or what the columns are.
        make: from runs to a `Figure` or a `Table`; None where the runs that it needs are not there.
    """

    name: str
    title: str
    caption: str
    make: Callable[[Sequence[Run]], Any]
