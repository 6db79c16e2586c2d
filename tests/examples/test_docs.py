"""The documentation is executed: marked blocks run, quoted examples are quoted exactly, links lead somewhere.

A Python block that begins with `# runnable` is executed; the blocks of a page share their names. If a `text` block
follows it directly, that is what it must print. A Python block that begins with `# from FILE` must stand in that file
word for word.
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
from pathlib import Path
from typing import NamedTuple

import jax
import pytest
from tools import settings_page

from paircredit.methods import methods

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")


class Block(NamedTuple):
    """A fenced block and the one that follows it with nothing but empty lines between."""

    language: str
    content: str
    following: str | None


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    found = list(FENCED.finditer(text))
    result = []
    for index, match in enumerate(found):
        after = found[index + 1] if index + 1 < len(found) else None
        adjacent = after is not None and not text[match.end() : after.start()].strip() and after[1] == "text"
        result.append(Block(match[1], match[2], after[2] if adjacent else None))
    return result


def marked(page: Path, mark: str) -> list[Block]:
    return [block for block in blocks(page) if block.language == "python" and block.content.startswith(mark)]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


EVERY_DAY = ("architecture.md", "use-the-estimators.md", "metagradient.md", "environments.md", "pwr.md", "meta-pwr.md")
"""One page of each kind; the other ones run at night."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=name_of(page), marks=() if page.name in EVERY_DAY else pytest.mark.nightly)
        for page in PAGES
        if marked(page, "# runnable\n")
    ],
)
def test_runnable_blocks_print_what_the_page_says(page, users_view):
    names: dict[str, object] = {"__name__": "docs"}
    for block in marked(page, "# runnable\n"):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), jax.numpy_dtype_promotion("standard"):
            exec(compile(block.content, name_of(page), "exec"), names)
        if block.following is not None:
            assert printed.getvalue() == block.following


@pytest.mark.parametrize("page", [page for page in PAGES if marked(page, "# from ")], ids=name_of)
def test_quoted_examples_are_quoted_exactly(page):
    quoted: dict[str, str] = {}
    for block in marked(page, "# from "):
        first, rest = block.content.split("\n", 1)
        file = first.removeprefix("# from ")
        assert rest.strip() in (ROOT / file).read_text(), f"{file} has no such code:\n{rest}"
        quoted[file] = quoted.get(file, "") + rest
    if page.name.startswith("add-"):  # these pages promise to show all of it
        for file, code in quoted.items():
            assert definitions(code) == definitions((ROOT / file).read_text())


def definitions(code: str) -> set[str]:
    """Names of the functions and classes at the top level."""
    return {node.name for node in ast.parse(code).body if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def test_the_settings_are_those_of_the_code():
    made = settings_page.settings_page()
    assert (ROOT / "docs" / "settings.md").read_text() == made, "run `python -m tools.settings_page`"


@pytest.mark.parametrize("name", sorted(methods()))
def test_the_page_of_a_method_tells_its_settings(name):
    page = (ROOT / "docs" / "methods" / f"{name}.md").read_text()
    assert settings_page.method_block(name) in page, "run `python -m tools.settings_page`"


@pytest.mark.parametrize("page", [*PAGES, *ROOT.glob("*.md")], ids=name_of)
def test_relative_links_resolve(page):
    text = FENCED.sub("", page.read_text())
    for link in (first or second for first, second in LINK.findall(text)):
        target, _, anchor = link.partition("#")
        if "://" in link or link.startswith("mailto:"):
            continue
        path = (page.parent / target) if target else page
        assert path.exists(), f"{name_of(page)} links to {link}, which is not there"
        if anchor and path.suffix == ".md":
            assert anchor in anchors(path), f"{name_of(page)} links to {link}, but there is no such heading"


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub makes of headings."""
    headings = re.findall(r"^#+ (.+)$", FENCED.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_every_page_is_in_the_table_of_contents():
    index = ROOT / "docs" / "index.md"
    linked = {first.partition("#")[0] for first, _ in LINK.findall(index.read_text())}
    assert {str(page.relative_to(ROOT / "docs")) for page in PAGES} - {"index.md"} <= linked
