"""`paircredit list`: what there is by name."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from paircredit.errors import PaircreditError


def run(words: list[str]) -> int:
    """`paircredit list`."""
    if words:
        raise PaircreditError(f"`paircredit list` takes no further words, but was given {' '.join(words)!r}.")
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
