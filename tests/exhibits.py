"""Figures and tables by name, as the command line comes to them."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

from paircredit.runs import Run
from paircredit.studies import STUDIES

FIGURES = {exhibit.name: exhibit for study in STUDIES for exhibit in study.figures}
TABLES = {exhibit.name: exhibit for study in STUDIES for exhibit in study.tables}
CLAIMS = {claim.id: claim for study in STUDIES for claim in study.claims}


def figure_of(name: str, runs: Sequence[Run]) -> Any:
    """The figure of that name, or None."""
    return FIGURES[name].make(runs)


def table_of(name: str, runs: Sequence[Run]) -> Any:
    """The table of that name, or None."""
    return TABLES[name].make(runs)


def table_rows(name: str, runs: Sequence[Run]) -> list[dict[str, str]]:
    """The rows of its CSV file."""
    return list(csv.DictReader(io.StringIO(table_of(name, runs).csv())))
