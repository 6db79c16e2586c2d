"""SQL over the metrics of many runs at once, by DuckDB."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paircredit.errors import PaircreditError
from paircredit.runs.manifest import METRICS
from paircredit.runs.read import Run


def query_metrics(runs: Sequence[Run], sql: str) -> dict[str, np.ndarray]:
    """Ask a question of the metrics of several runs.

    Args:
        runs: whose metrics; every file is checked against its sum first.
        sql: a query over the table `metrics`, which has a column `run` (the run's name) beside those of the rows.

    Returns:
        One array per column.
    """
    try:
        import duckdb  # here and not above: training runs on machines that do not have it
    except ImportError as error:
        raise PaircreditError("SQL over metrics needs DuckDB: pip install 'paircredit[sql]'.") from error
    for run in runs:
        run.checked(METRICS)
    given = {"files": [str(run.path / METRICS) for run in runs], "names": [run.name for run in runs]}
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE metrics AS SELECT $names[list_position($files, filename)] AS run, * EXCLUDE (filename) "
            "FROM read_json($files, format = 'newline_delimited', filename = true, union_by_name = true)",
            given,
        )
        return {name: np.asarray(column) for name, column in connection.execute(sql).fetchnumpy().items()}
