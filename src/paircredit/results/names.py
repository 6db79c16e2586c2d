"""Methods as readers see them: their names and their order; and the runs that play a role."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paircredit.runs.read import Run

CORE = ("a2c", "h-pwr", "meta-pwr", "meta-pwtd")
"""The paper's own methods, and what they are built on."""
LABELS = (*CORE, "meta-lambda", "rgm", "a2c-rr", "tvt", "synthetic-returns")
"""Methods in the order in which they are shown; others come after them, by name."""
TITLES = {
    "a2c": "A2C",
    "regular": "regular return",
    "h-pwr": "H-PWR",
    "meta-pwr": "Meta-PWR",
    "meta-pwtd": "Meta-PWTD",
    "meta-lambda": "Meta-λ(s)",
    "rgm": "RGM",
    "a2c-rr": "A2C-RR",
    "tvt": "TVT",
    "synthetic-returns": "Synthetic Returns",
}
OF_ERRORS = ("meta-pwtd",)
"""Methods that weigh TD errors instead of rewards."""


def title(label: str) -> str:
    """What readers call a method, and what is changed about it; a label that nobody knows is its own title."""
    method = method_of(label)
    return TITLES.get(method, method) + label.removeprefix(method)


def method_of(label: str) -> str:
    """The method of a label, whatever is changed about it."""
    return label.partition(",")[0]


def runs_of(runs: Sequence[Run], *roles: str) -> list[Run]:
    """The runs of some roles."""
    return [run for run in runs if run.kind == "training" and run.spec.get("tags", {}).get("role") in roles]


def labels_of(runs: Sequence[Run], *roles: str) -> list[str]:
    """The methods of all runs of some roles, in the order in which they are shown."""
    return in_order({run.spec["tags"]["label"] for run in runs_of(runs, *roles)})


def in_order(labels: set[str]) -> list[str]:
    """Labels of methods in the order in which they are shown."""
    return [label for label in LABELS if label in labels] + sorted(labels.difference(LABELS))


def environment_name(env: str, settings: Mapping[str, Any]) -> str:
    """What an environment is called: its name, but that of the game where a setting names another one."""
    suite, slash, game = env.partition("/")
    return f"{suite}/{settings.get('game', game)}" if slash else env
