"""What a study is made of: what is run, what is shown of it, and which claims are judged by it.

A claim *holds* or *fails* where the runs can tell, and is *not judged* where they cannot. An order between two
methods is contradicted only when the 95 % bootstrap interval of the difference says so: a tie is reported as a tie.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from paircredit.results.tables import Table
from paircredit.runs.read import Run

if TYPE_CHECKING:
    from paircredit.experiments.spec import Recipe

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


def nothing(runs: Sequence[Run]) -> dict[str, Any]:
    """What a study keeps that keeps nothing."""
    del runs
    return {}


@dataclasses.dataclass(frozen=True)
class Study:
    """One problem and all that is asked of it.

    Attributes:
        experiments: what is run.
        figures: what is drawn, in the order of a report.
        tables: numbers, in the order of a report.
        claims: what is judged.
        digest: small tables that are worth keeping of runs, by name of their files; None where there are no runs.
        weights: learned weights that are worth keeping, by name.
    """

    experiments: tuple[Recipe[Any], ...] = ()
    figures: tuple[Exhibit, ...] = ()
    tables: tuple[Exhibit, ...] = ()
    claims: tuple[Claim, ...] = ()
    digest: Callable[[Sequence[Run]], Mapping[str, Table | None]] = nothing
    weights: Callable[[Sequence[Run]], Mapping[str, np.ndarray]] = nothing
