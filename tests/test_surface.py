"""What the packages export is what `docs/public.md` promises; it is little, and its functions say what they do."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import paircredit

PAGE = Path(__file__).parents[1] / "docs" / "public.md"
PACKAGES = ["paircredit", *(m.name for m in pkgutil.walk_packages(paircredit.__path__, "paircredit.") if m.ispkg)]
MOST_NAMES = 120


def exported(package: str) -> list[str]:
    return list(getattr(importlib.import_module(package), "__all__", ()))


def promised() -> dict[str, list[str]]:
    rows = re.findall(r"^\| `(paircredit[.\w]*)` \|[^|]*\| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    return {package: re.findall(r"`(\w+)`", names) for package, names in rows}


def test_the_page_lists_the_packages_that_export_something():
    assert set(promised()) == {package for package in PACKAGES if exported(package)}


@pytest.mark.parametrize("package", promised())
def test_a_package_exports_what_the_page_promises(package):
    assert sorted(promised()[package]) == sorted(exported(package))


def test_the_surface_is_small():
    assert sum(map(len, promised().values())) <= MOST_NAMES


@pytest.mark.parametrize("package", PACKAGES)
def test_every_exported_function_has_a_docstring(package):
    things = {name: getattr(importlib.import_module(package), name) for name in exported(package)}
    assert not [name for name, thing in things.items() if inspect.isfunction(thing) and not thing.__doc__]
