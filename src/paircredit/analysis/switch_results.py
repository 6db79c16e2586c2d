"""What each open choice of the DAG experiment does to the learned weights and to learning with them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paircredit.analysis.dag_results import (
    TITLES,
    by_table,
    evaluation_times,
    mean_weight,
    next_transition,
    pair_sets,
)
from paircredit.analysis.statistics import mean_interval, median_interval
from paircredit.runs.read import Run


def switch_rows(runs: Sequence[Run]) -> list[dict[str, str | int | float | None]]:
    """One row per switch and method; empty where the experiment was not run."""
    by_role: dict[str, dict[tuple[str, str], Run]] = {"switch-reset": {}, "switch-evaluation": {}}
    for run in runs:
        tags = run.spec.get("tags", {})
        if tags.get("role") in by_role:
            by_role[tags["role"]][tags["switch"], tags["label"]] = run
    rows: list[dict[str, str | int | float | None]] = []
    for (switch, label), run in by_role["switch-reset"].items():
        depth, weights = run.spec["tags"]["depth"], run.arrays()["weights"]
        pairs = pair_sets(depth)
        row: dict[str, str | int | float | None] = {"switch": switch, "depth": depth, "seeds": len(weights)}
        row["method"] = TITLES[label]
        for name, chosen in (
            ("credited", pairs.credited),
            ("uncredited", pairs.uncredited),
            ("next_transition", next_transition(depth)),
        ):
            row[f"weight_{name}"] = mean_interval(mean_weight(weights, chosen)).estimate
        evaluation = by_role["switch-evaluation"].get((switch, label))
        if evaluation is not None:
            times = by_table(evaluation, evaluation_times(evaluation))
            interval = median_interval(times) if np.isfinite(times).all() else None
            row["episodes_to_95"] = float(np.median(times))
            row["low"], row["high"] = (interval.low, interval.high) if interval else (None, None)
        rows.append(row)
    return rows
