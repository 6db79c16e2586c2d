"""The settings in the docs, made from the code: `python -m tools.settings_page` writes them where they belong.

`docs/settings.md` is made whole: what all methods share, what each has of its own, and the layers of the presets. The
pages of the methods have a table between two marks.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from pathlib import Path

from paircredit.methods import ActorCritic, OuterLoop, make_method, methods
from paircredit.methods.a2c import A2C
from paircredit.methods.presets import Layer, layers
from paircredit.settings import About, about, fields_of, settings_in

DOCS = Path(__file__).parent.parent / "docs"
BEGIN, END = "<!-- settings: made by `python -m tools.settings_page` -->", "<!-- end of settings -->"
HEAD = """# Settings

Every hyperparameter, what it means, what its default is and where that comes from. This page is made from the code by
`python -m tools.settings_page`. `paircredit list meta-pwr key-to-door` prints all settings of a method as they are on
an environment, and which layer of a preset chose them; `paircredit train dag meta-pwr --help` tells them as options.

*Floats* are data of the compiled program: members with different values train side by side, and a sweep compiles once.
Everything else shapes the program: another value is another program.
"""

BESIDE = """
`outer` is for methods whose weights learn by metagradient; `network` matters where tables do not fit.
"""
PRESETS = """## Presets

What a preset says where a method's default does not stand. A layer lies on those that it names, and wins over them.
"""
SHARED = "[all methods](../settings.md#all-methods)"
Row = tuple[str, object, About]


def shared() -> dict[str, tuple[object, About]]:
    """The settings of an agent that are not those of its rule."""
    rule = A2C()
    settings = settings_in(ActorCritic(rule, outer=OuterLoop()))
    return {name: (value, known) for name, value, known in settings if name not in fields_of(rule)}


def own(method: str) -> list[Row]:
    """The settings of a method that not all methods have, or that have other defaults in it."""
    common, rows = shared(), []
    groups = fields_of(make_method(method))
    for name, value, known in settings_in(make_method(method)):
        if name not in common:
            rows.append((name, value, known))
        elif common[name][0] != value:
            told = about(groups[name.partition(".")[0]]).source
            usual = f"elsewhere `{common[name][0]}`"
            rows.append((name, value, dataclasses.replace(known, source=f"{told}; {usual}" if told else usual)))
    return rows


def table(rows: Iterable[Row], page: Path) -> str:
    """The settings as a table for a page of the docs."""
    lines = ["| name | default | meaning | range | where the default comes from |", "|---|---|---|---|---|"]
    for name, value, known in rows:
        cells = (
            f"`{name}`",
            f"`{value}`",
            known.meaning,
            known.range.removeprefix("be ").removeprefix("lie "),
            known.source,
        )
        lines.append("| " + " | ".join(_linked(cell.replace("|", "\\|"), page) for cell in cells) + " |")
    return "\n".join(lines)


def method_block(method: str) -> str:
    """What stands on the page of a method."""
    page, rows = DOCS / "methods" / f"{method}.md", own(method)
    told = f"`make_method({method!r})`".replace("'", '"')
    if not rows:
        text = f"{told} has no settings of its own, only those that {SHARED} share."
    else:
        text = f"{table(rows, page)}\n\nThe others are those that {SHARED} share."
    return f"{BEGIN}\n{text}\n{END}"


def settings_page() -> str:
    """`docs/settings.md`."""
    page = DOCS / "settings.md"
    parts = [HEAD, "## All methods\n", table(((name, *both) for name, both in shared().items()), page)]
    parts.append(BESIDE)
    for method, summary in sorted(methods().items()):
        if rows := own(method):
            link = f"[{summary[0].upper()}{summary[1:]}](methods/{method}.md).\n"
            parts += [f"## {method}\n", link, table(rows, page), ""]
    parts.append(PRESETS)
    for layer in layers():
        below = f"On {' and '.join(f'*{x.name}*' for x in layer.on)}.\n" if layer.on else ""
        parts += (
            [f"### {layer.name[0].upper()}{layer.name[1:]}\n", below, _layer_table(layer), ""] if layer.settings else []
        )
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts)).rstrip() + "\n"


def _layer_table(layer: Layer) -> str:
    lines = ["| setting | value | for |", "|---|---|---|"]
    for name, value in layer.settings.items():
        owner, _, setting = name.rpartition(":")
        lines.append(f"| `{setting}` | `{value}` | {owner or 'all'} |")
    return "\n".join(lines)


def _linked(text: str, page: Path) -> str:
    """With paths below docs/ as links from a page."""

    def link(match: re.Match[str]) -> str:
        path, anchor = match.group(1), match.group(2) or ""
        up = "../" * (len(page.relative_to(DOCS).parts) - 1)
        return f"[{(anchor.lstrip('#') or path.removesuffix('.md')).replace('-', ' ')}]({up}{path}{anchor})"

    return re.sub(r"docs/([\w/-]+\.md)(#[\w-]+)?", link, text)


def with_block(text: str, block: str) -> str:
    """A page with another block between its marks."""
    return re.sub(f"{re.escape(BEGIN)}.*?{re.escape(END)}", lambda _: block, text, flags=re.DOTALL)


def main() -> None:
    """Write all of it."""
    (DOCS / "settings.md").write_text(settings_page())
    for method in methods():
        page = DOCS / "methods" / f"{method}.md"
        page.write_text(with_block(page.read_text(), method_block(method)))


if __name__ == "__main__":
    main()
