"""A digest of runs that is small enough to be kept for ever: verdicts, tables, curves, weights, figures, provenance."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from paircredit.analysis.bsuite_results import Regrets, all_regrets
from paircredit.analysis.claims import Verdict
from paircredit.analysis.dag_results import learning_curves
from paircredit.analysis.game_results import GameCurves, all_games
from paircredit.analysis.game_suites import SUITES
from paircredit.envs.dag import acting_states
from paircredit.figures.bsuite_regret import thinned
from paircredit.figures.save import figure_files
from paircredit.report.key_to_door_digest import key_to_door_tables, key_to_door_weights
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
    contents |= {name: _csv(header, rows) for name, header, rows in key_to_door_tables(runs, CURVE_POINTS)}
    regrets = all_regrets(runs)
    if regrets:
        contents["bsuite-members.csv"] = _csv(
            ["method", "bsuite_id", "seed", "episodes", "total_regret"],
            [row for own in regrets for row in _totals(own)],
        )
        contents["bsuite-curves.csv"] = _csv(
            ["domain", "setting", "method", "members", "episode", "mean", "deviation"],
            [row for own in regrets for row in _regret_curves(own)],
        )
    for suite in SUITES:
        games = [own for methods in all_games(runs, suite).values() for own in methods.values()]
        if games:
            contents[f"{suite.role}-members.csv"] = _csv(
                ["game", "method", "seed", "frames", "score"], [row for own in games for row in _game_scores(own)]
            )
            contents[f"{suite.role}-curves.csv"] = _csv(
                ["game", "method", "seeds", "frames", "mean", "deviation"],
                [row for own in games for row in _game_curves(own)],
            )
    weights = _weights(runs) | key_to_door_weights(runs)
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
    kept = ("kind", "status", "started", "seconds", "checkpoints", "resumptions", "provenance", "spec", "files")
    return {"name": run.name} | {key: run.manifest[key] for key in kept if key in run.manifest}


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


def _totals(regrets: Regrets) -> list[list[object]]:
    """The total regret of every member."""
    members = zip(regrets.ids, regrets.seeds.tolist(), regrets.totals.tolist(), strict=True)
    return [[regrets.label, name, seed, regrets.episodes, round(total, 3)] for name, seed, total in members]


def _regret_curves(regrets: Regrets) -> list[list[object]]:
    """The regret of an episode in every setting, mean and deviation over members, in the course of training."""
    episodes, values = thinned(regrets)
    rows: list[list[object]] = []
    for setting in regrets.settings:
        own = values[regrets.members(setting)]
        names = [regrets.domain, setting.text, regrets.label, len(own)]
        for episode, mean, deviation in zip(episodes, own.mean(axis=0), own.std(axis=0), strict=True):
            rows.append([*names, float(episode), round(float(mean), 5), round(float(deviation), 5)])
    return rows


def _game_scores(curves: GameCurves) -> list[list[object]]:
    """The score of every member."""
    scores = curves.scores()
    if scores is None:
        return []
    members = zip(curves.seeds.tolist(), scores.tolist(), strict=True)
    return [[curves.game, curves.label, seed, int(curves.trained), round(score, 4)] for seed, score in members]


def _game_curves(curves: GameCurves) -> list[list[object]]:
    """The return of a game at some hundred points, mean and deviation over seeds."""
    frames, values = curves.thinned(CURVE_POINTS)
    names = [curves.game, curves.label, len(values)]
    columns = zip(frames, values.mean(axis=0), values.std(axis=0), strict=True)
    return [[*names, int(at), round(float(mean), 4), round(float(deviation), 4)] for at, mean, deviation in columns]


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
