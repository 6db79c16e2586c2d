"""Imports go one way, and `docs/rooms.toml` says which."""

from pathlib import Path

import pytest
from tools import rooms

LISTED, IMPORTED = rooms.listed(), rooms.imported()


def test_every_room_is_listed_and_there():
    assert set(LISTED) == set(IMPORTED)


@pytest.mark.parametrize("name", LISTED)
def test_a_room_knows_only_of_rooms_above_it(name):
    above = list(LISTED)[: list(LISTED).index(name)]
    assert set(LISTED[name]["knows"]) <= set(above)


@pytest.mark.parametrize("name", LISTED)
def test_a_room_imports_what_it_is_said_to_know(name):
    assert IMPORTED[name] == set(LISTED[name]["knows"]), f"[{name}] in docs/rooms.toml, or an import in src"


def test_the_docs_show_the_table():
    page = Path(rooms.ROOT / "docs" / "architecture.md").read_text()
    assert rooms.table() in page, "put the output of `python -m tools.rooms` into docs/architecture.md"


def test_imports_are_found_wherever_they_stand(tmp_path, monkeypatch):
    """Within functions, through the front door, of a name deep in a room."""
    for name in ("one", "two", "three"):
        (tmp_path / f"{name}.py").write_text("")
    (tmp_path / "four").mkdir()
    (tmp_path / "four" / "__init__.py").write_text(
        "import paircredit.one\nfrom paircredit import two, TimeStep\n"
        "def function():\n    from paircredit.three.deep import name\n"
    )
    monkeypatch.setattr(rooms, "SOURCE", tmp_path)
    assert rooms.imported()["four"] == {"one", "two", "three", "paircredit"}
