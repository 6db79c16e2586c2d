"""What a study is: what is run, what is shown of it, which claims are judged by it, and what is worth keeping."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from paircredit.experiments.spec import Recipe
from paircredit.results.exhibits import Claim, Exhibit, Table
from paircredit.runs.read import Run


@dataclasses.dataclass(frozen=True)
class Study:
    """One problem and all that is asked of it; figures and tables are in the order of a report.

    Worth keeping of its runs are small tables by names of files (None where there are no runs), and weights by name.
    """

    experiments: tuple[Recipe[Any], ...] = ()
    figures: tuple[Exhibit, ...] = ()
    tables: tuple[Exhibit, ...] = ()
    claims: tuple[Claim, ...] = ()
    digest: Callable[[Sequence[Run]], Mapping[str, Table | None]] = lambda runs: {}
    weights: Callable[[Sequence[Run]], Mapping[str, np.ndarray]] = lambda runs: {}
