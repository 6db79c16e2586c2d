"""What a study is: what is run, what is shown of it, which claims are judged by it, and what is worth keeping."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from paircredit.experiments.spec import Recipe
from paircredit.results.exhibits import Claim, Exhibit, Table
from paircredit.runs.read import Run


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
