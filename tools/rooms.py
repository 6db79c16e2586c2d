"""The rooms of the package as `docs/rooms.toml` lists them, as the code has them, and as a table for the docs.

python -m tools.rooms
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "paircredit"


def listed() -> dict[str, dict]:
    """Name → what it `holds` and which rooms it `knows`, in the order of the file."""
    return tomllib.loads((ROOT / "docs" / "rooms.toml").read_text())


def imported() -> dict[str, set[str]]:
    """Name → the rooms that its files import, wherever in the file they do."""
    rooms: dict[str, set[str]] = {}
    for file in SOURCE.rglob("*.py"):
        room = _room(file.relative_to(SOURCE).parts[0].removesuffix(".py"))
        rooms.setdefault(room, set()).update(_targets(ast.parse(file.read_text())))
    return {room: targets - {room} for room, targets in rooms.items()}


def table() -> str:
    """For `docs/architecture.md`."""
    rows = [
        f"| `{name}` | {room['holds']} | {', '.join(room['knows']) or 'nothing'} |" for name, room in listed().items()
    ]
    return "\n".join(["| room | holds | knows of |", "|---|---|---|", *rows])


def _targets(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "paircredit":
            names = [f"paircredit.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.module and not node.level, "a relative import hides where it leads"
            names = [node.module]
        else:
            continue
        for name in names:
            first, _, rest = name.partition(".")
            if first == "paircredit":
                yield _room(rest.split(".")[0])


def _room(name: str) -> str:
    """A package or a module of its own; all else is found in the front door."""
    is_room = name != "__init__" and ((SOURCE / name / "__init__.py").exists() or (SOURCE / f"{name}.py").exists())
    return name if name and is_room else "paircredit"


if __name__ == "__main__":
    print(table())
