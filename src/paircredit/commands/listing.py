"""`paircredit list`: what there is by name."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Mapping

import tyro

from paircredit.commands import parse_options

WIDE = 160
"""Columns of a table that no terminal shows."""


def run(words: list[str]) -> int:
    """List names, or all hyperparameters of one method on one environment."""
    if words:
        return _list_settings(words)
    from paircredit.envs import environments
    from paircredit.experiments.spec import SCALES
    from paircredit.methods import methods, presets
    from paircredit.studies import experiments

    for title, entries in (
        ("Environments", environments()),
        ("Methods", methods()),
        ("Presets", presets()),
        (f"Experiments (scales {', '.join(SCALES)})", experiments()),
    ):
        print(title)
        print_entries(entries)
        print()
    return 0


def print_entries(entries: Mapping[str, str]) -> None:
    """A line each; a family whose members have the same summary (atari/alien, atari/amidar, …) gets one paragraph."""
    families: dict[tuple[str, str], list[str]] = {}
    for name, summary in entries.items():
        family, slash, own = name.rpartition("/")
        families.setdefault((family + slash, summary), []).append(own)
    width = max(len(family) + len(names[0]) for (family, _), names in families.items() if len(names) == 1)
    for (family, summary), names in families.items():
        if len(names) == 1:
            print(f"  {family + names[0]:<{width}} {summary}")
            continue
        lines = textwrap.wrap(f"{summary}: {', '.join(names)}", 118 - width, break_on_hyphens=False)
        print(f"  {family + '…':<{width}} " + f"\n{' ' * (width + 3)}".join(lines))


@dataclasses.dataclass(frozen=True)
class ListOptions:
    """What there is by name; with a method and an environment, its hyperparameters and where they come from."""

    method: tyro.conf.Positional[str]
    """Name of a method."""
    env: tyro.conf.Positional[str] = "dag"
    """Name of an environment."""
    preset: str = "default"
    """Hyperparameters to start from."""


def _list_settings(words: list[str]) -> int:
    from rich.console import Console
    from rich.table import Table

    from paircredit.methods.registry import resolved_settings

    options = parse_options(ListOptions, words, "paircredit list")
    table = Table("setting", "value", "set by", "meaning", box=None, pad_edge=False, header_style="bold")
    for setting in resolved_settings(options.method, options.preset, options.env):
        value = "none" if setting.value is None else str(setting.value)
        table.add_row(setting.name, value, setting.set_by, setting.about.help)
    console = Console(highlight=False, markup=False)
    console = console if console.is_terminal else Console(width=WIDE, highlight=False, markup=False)
    console.print(table)
    return 0
