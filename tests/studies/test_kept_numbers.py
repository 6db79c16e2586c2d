"""Numbers on the page of results are those of the members that are kept beside it."""

from __future__ import annotations

import csv
import itertools
from pathlib import Path

import numpy as np
import pytest

from paircredit.results.intervals import median_of_times

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reproduction.md").read_text()
LAMBDAS = (1.0, 0.95, 0.9, 0.8, 0.7, 0.5, 0.0)


def kept(file: str) -> list[dict[str, str]]:
    with (ROOT / "results" / file).open() as opened:
        return list(csv.DictReader(opened))


def times(rows: list[dict[str, str]], column: str) -> np.ndarray:
    """Of every member; those that did not arrive are empty."""
    return np.array([float(row[column] or "inf") for row in rows])


def printed_rows() -> list[str]:
    """The table of Key-to-Door with the printed hyperparameters."""
    members = kept("key-to-door-printed/key-to-door-members.csv")

    def row(method: str, name: str) -> str:
        own = [member for member in members if member["method"] == method]
        nine, best = (times(own, f"frames to {door}") for door in ("9", "9.5"))
        medians = (" [".join((f"{x.estimate:.2f}", f"{x.low:.2f}, {x.high:.2f}]")) for x in map(millions, (nine, best)))
        door = np.mean([float(member["door_reward"]) for member in own])
        return f"| {name} | {np.isfinite(nine).sum()} of {len(own)} | {' | '.join(medians)} | {door:.2f} |"

    names = {"h-pwr": "H-PWR", "a2c": "A2C, λ = 0.5", "meta-pwr": "Meta-PWR", "meta-pwtd": "Meta-PWTD"}
    return [row(*each) for each in names.items()]


def millions(frames: np.ndarray):
    found = median_of_times(frames)
    return found._replace(estimate=found.estimate / 1e6, low=found.low / 1e6, high=found.high / 1e6)


def searched_rows() -> list[str]:
    """The table of what was searched in the DAG."""
    members = kept("dag-search/dag-search-members.csv")

    def cell(**wanted: object) -> str:
        own = [m for m in members if all(type(v)(m[k]) == v for k, v in wanted.items())]
        arrived = times(own, "episodes")
        median, count = np.median(arrived), int(np.isfinite(arrived).sum())
        share = "" if count == len(own) else f" ({count})"
        return (f"{median:.0f}" if np.isfinite(median) else "–") + share

    rows = []
    for rate, depth, start in itertools.product((0.01, 0.1), (4, 8, 16), (0.0, 1.0)):
        where = {"depth": depth, "rate": rate, "start": start}
        cells = [cell(method="regular", **{"lambda": lambda_}, **where) for lambda_ in LAMBDAS]
        cells += [cell(method=label, **where) for label in ("h-pwr", "meta-pwr")]
        rows.append(f"| {rate:g} | {depth} | {'random' if start else '0'} | {' | '.join(cells)} |")
    return rows


@pytest.mark.parametrize("row", [*printed_rows(), *searched_rows()])
def test_the_page_has_the_row(row):
    assert row in PAGE.splitlines()
