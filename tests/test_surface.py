"""What the packages export is documented: every exported function says what it does."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import pytest

import paircredit

PACKAGES = ["paircredit", *(m.name for m in pkgutil.walk_packages(paircredit.__path__, "paircredit.") if m.ispkg)]


@pytest.mark.parametrize("name", PACKAGES)
def test_every_exported_function_has_a_docstring(name):
    package = importlib.import_module(name)
    exported = {export: getattr(package, export) for export in getattr(package, "__all__", ())}
    silent = [export for export, thing in exported.items() if inspect.isfunction(thing) and not thing.__doc__]
    assert not silent
