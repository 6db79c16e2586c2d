"""A digest of runs that is small enough to be kept for ever: verdicts, tables, curves, weights, figures, provenance."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from paircredit.analysis.claims import Verdict
from paircredit.analysis.dag_results import learning_curves
from paircredit.envs.dag import acting_states
from paircredit.figures.save import figure_files
from paircredit.runs.folder import make_folder, write_file
from paircredit.runs.read import Run

CURVE_POINTS = 125


def write_digest(runs: Sequence[Run], verdicts: Sequence[Verdict], folder: Path) -> list[Path]:
    """Write the digest into a new folder.

    Args:
        runs: what to digest.
        verdicts: on the claims, by these runs.
        folder: must not exist.

    Returns:
        The files that were written.
    """
    contents = {
        "verdicts.csv": _csv(
            ["id", "status", "measured", "statement", "where"],
            [[v.id, v.status, v.measured, v.statement, v.where] for v in verdicts],
        ),
        "provenance.json": json.dumps([_origin(run) for run in runs], indent=1).encode() + b"\n",
    }
    curves = _curves(runs)
    if curves:
        contents["curves.csv"] = _csv(["run", "episodes", "members", "mean", "deviation", "lowest", "highest"], curves)
    weights = _weights(runs)
    if weights:
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **weights)  # type: ignore[arg-type]
        contents["weights.npz"] = buffer.getvalue()
    contents |= {f"figures/{name}": content for name, content in figure_files(runs)}
    make_folder(folder)
    make_folder(folder / "figures")
    for name, content in contents.items():
        write_file(folder / name, content)
    return [folder / name for name in contents]


def _origin(run: Run) -> dict[str, object]:
    kept = ("kind", "started", "seconds", "provenance", "spec", "files")
    return {"name": run.name} | {key: run.manifest[key] for key in kept}


def _curves(runs: Sequence[Run]) -> list[list[object]]:
    """The exact expected return of the members of every evaluation, at some hundred points."""
    rows: list[list[object]] = []
    for run in runs:
        if run.spec.get("tags", {}).get("role") != "evaluation":
            continue
        curves = learning_curves(run)
        chosen = np.unique(np.linspace(0, len(curves.episodes) - 1, CURVE_POINTS).round().astype(int))
        for point in chosen:
            returns = curves.expected[:, point]
            numbers = [returns.mean(), returns.std(), returns.min(), returns.max()]
            rows.append([run.name, int(curves.episodes[point]), len(returns), *(round(float(x), 4) for x in numbers)])
    return rows


def _weights(runs: Sequence[Run]) -> dict[str, np.ndarray]:
    """Learned tables, rows of acting states, in half precision: mean and deviation over the seeds (of each mask)."""
    arrays: dict[str, np.ndarray] = {}
    for run in runs:
        tags = run.spec.get("tags", {})
        if tags.get("role") not in ("reset", "masked-values", "switch-reset"):
            continue
        content = run.arrays()
        rows = content["weights"][:, acting_states(tags["depth"])]
        masks = content.get("label_mask", np.zeros(len(rows), dtype=int))
        for mask in np.unique(masks):
            name = run.name if "label_mask" not in content else f"{run.name}-{mask}"
            arrays[f"{name}-mean"] = rows[masks == mask].mean(axis=0).astype(np.float16)
            arrays[f"{name}-deviation"] = rows[masks == mask].std(axis=0).astype(np.float16)
    return arrays


def _csv(header: list[str], rows: list[list[object]]) -> bytes:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return buffer.getvalue().encode()
