"""Fields of a method by dotted name."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from paircredit.errors import unknown_name


def replace_dotted(method: Any, settings: Mapping[str, Any], name: str) -> Any:
    """Replace fields of a method by dotted name: `{"inner.learning_rate": 0.1}`.

    Lists become tuples: settings may come from JSON.
    """
    for dotted, value in settings.items():
        first, _, rest = dotted.partition(".")
        known = [field.name for field in dataclasses.fields(method)]
        if first not in known:
            raise unknown_name(f"setting of {name}", dotted, known)
        value = tuple(value) if isinstance(value, list) else value
        new = replace_dotted(getattr(method, first), {rest: value}, f"{name}.{first}") if rest else value
        method = dataclasses.replace(method, **{first: new})
    return method
