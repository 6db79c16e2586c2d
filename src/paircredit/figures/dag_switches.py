"""The open choices of the DAG experiment, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from paircredit.analysis.switch_results import switch_rows
from paircredit.figures.tables import Column, Table
from paircredit.runs.read import Run


def table(runs: Sequence[Run]) -> Table | None:
    """A row per switch and method."""
    rows = switch_rows(runs)
    if not rows:
        return None
    columns = (
        Column("switch", "switch"),
        Column("method", "method"),
        Column("weight_credited", "weight where handcrafted is 1", ".2f"),
        Column("weight_uncredited", "where it is 0", ".2f"),
        Column("weight_next_transition", "on the next transition", ".2f"),
        Column("episodes_to_95", "episodes to 95 %", ",.0f"),
        Column("low", "from", ",.0f"),
        Column("high", "to", ",.0f"),
    )
    return Table(columns, tuple(tuple(row.get(column.name) for column in columns) for row in rows))
