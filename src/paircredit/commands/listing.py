"""`paircredit list`: what there is by name."""

from __future__ import annotations

from paircredit.errors import PaircreditError


def run(words: list[str]) -> int:
    """The command."""
    if words:
        raise PaircreditError(f"`paircredit list` takes no further words, but was given {' '.join(words)!r}.")
    from paircredit.envs import environments
    from paircredit.experiments import experiments
    from paircredit.experiments.spec import SCALES
    from paircredit.methods import methods, presets

    for title, entries in (
        ("Environments", environments()),
        ("Methods", methods()),
        ("Presets", presets()),
        (f"Experiments (scales {', '.join(SCALES)})", experiments()),
    ):
        print(title)
        width = max(len(name) for name in entries)
        for name, summary in entries.items():
            print(f"  {name:<{width}} {summary}")
        print()
    return 0
