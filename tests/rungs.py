"""Which cases of a parametrised test run every day, and which at night."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def nightly_but(every_day: Iterable[Any], cases: Iterable[Any]) -> list[Any]:
    """The cases as parameters (a tuple is several); all but those for every day are marked `nightly`."""
    chosen, params = list(every_day), []
    for case in cases:
        values = case if isinstance(case, tuple) else (case,)
        params.append(pytest.param(*values, marks=() if case in chosen else pytest.mark.nightly))
    return params
