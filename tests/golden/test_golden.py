"""Every table, verdict, digest and drawn number of these runs is what it was.

After a change that is meant: `python -m tests.golden.test_golden [SUITE ...]` writes the files again; read the
difference before it is committed. With PAIRCREDIT_EXACT=1 the numbers must be the same to the last bit, which they are
on the machine and with the versions that wrote the files.
"""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from paircredit.experiments.spec import as_json, from_json
from tests.golden.drawn import FILES, as_text, results_of
from tests.golden.suites import RESULTS, SUITES
from tests.rungs import nightly_but

CLOSE = 1e-9
"""Of the size of the numbers: sums over many may be made in another order by another processor."""
QUICK = ("own", "tabular", "games", "key_to_door_claims", "kept_key_to_door")
"""Suites for every day: one of each kind, where it does not take long."""
EXACT = os.environ.get("PAIRCREDIT_EXACT") == "1"


@pytest.mark.parametrize("suite", nightly_but(QUICK, SUITES))
def test_nothing_has_changed(suite: str, tmp_path: Path) -> None:
    kept = json.loads((FILES / f"{suite}.json").read_text())
    found = json.loads(as_text(results_of(suite, tmp_path)))
    assert sorted(found) == sorted(kept)
    for name, expected in kept.items():
        assert not (difference := first_difference(found[name], expected)), f"{name}: {difference}"


def first_difference(found: Any, expected: Any, where: str = "") -> str:
    """Where two results differ first, or nothing."""
    if isinstance(expected, dict) and isinstance(found, dict) and found.keys() == expected.keys():
        pairs = [(f"{where}.{key}", found[key], expected[key]) for key in expected if key != "bits" or EXACT]
    elif isinstance(expected, list) and isinstance(found, list) and len(found) == len(expected):
        pairs = [(f"{where}[{place}]", *pair) for place, pair in enumerate(zip(found, expected, strict=True))]
    else:
        return "" if _same(found, expected) else f"{where} is {str(found)[:300]} and was {str(expected)[:300]}"
    return next((text for place, a, b in pairs if (text := first_difference(a, b, place))), "")


def _same(found: Any, expected: Any) -> bool:
    """Equal, or numbers (also such that are written in a table) that are close."""
    if found == expected or EXACT:
        return bool(found == expected)
    try:
        a, b = float(found), float(expected)
    except (TypeError, ValueError):
        return False
    return math.isclose(a, b, rel_tol=CLOSE, abs_tol=CLOSE)


@pytest.mark.parametrize("digest", sorted(path.parent.name for path in RESULTS.glob("*/provenance.json")))
def test_specs_of_kept_runs_are_read_and_written_as_they_were(digest: str) -> None:
    for run in json.loads((RESULTS / digest / "provenance.json").read_text()):
        spec = from_json(run["kind"], run["spec"])
        assert json.loads(json.dumps(as_json(spec))) == run["spec"]


if __name__ == "__main__":
    for name in sys.argv[1:] or SUITES:
        with tempfile.TemporaryDirectory() as place:
            FILES.mkdir(exist_ok=True)
            (FILES / f"{name}.json").write_text(as_text(results_of(name, Path(place))))
            print(name)
