"""Fields of a method by dotted name."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from paircredit.errors import PaircreditError, unknown_name
from paircredit.settings import check_kind, check_range


def replace_dotted(method: Any, settings: Mapping[str, Any], name: str) -> Any:
    """Replace fields of a method by dotted name: `{"inner.learning_rate": 0.1}`.

    Lists become tuples: settings may come from JSON.

    Raises:
        PaircreditError: there is no such field, or it cannot have such a value.
    """
    for dotted, value in settings.items():
        first, dot, rest = dotted.partition(".")
        known = {field.name: field for field in dataclasses.fields(method)}
        if first not in known or (dot and not dataclasses.is_dataclass(getattr(method, first))):
            raise unknown_name(f"setting of {name}", dotted, known)
        value = tuple(value) if isinstance(value, list) else value
        if dot:
            value = replace_dotted(getattr(method, first), {rest: value}, f"{name}.{first}")
        else:
            check_value(getattr(method, first), known[first], value, f"{name}.{first}")
        method = dataclasses.replace(method, **{first: value})
    return method


def check_value(present: Any, field: dataclasses.Field, value: Any, whose: str) -> None:
    """Refuse a value that a field of a method cannot have.

    Args:
        present: the value that it replaces.
        field: the field.
        value: to be put there.
        whose: the setting, for the sentence.
    """
    if dataclasses.is_dataclass(present) and not isinstance(value, type(present)):
        raise PaircreditError(f"{whose} is a group of settings, so it cannot be {value!r}; name one of them.")
    check_kind(field, value, whose)
    check_range(field, value, whose)
