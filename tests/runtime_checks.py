"""The type checker of the test suite: beartype, made to fit the package's conventions."""

from __future__ import annotations

import typing
from typing import Any

from beartype import BeartypeConf, FrozenDict, beartype
from jaxtyping import Array, Float

# A hyperparameter that is annotated as a float is a leaf: under jit and vmap it is a traced scalar.
_beartype = beartype(conf=BeartypeConf(hint_overrides=FrozenDict({float: float | Float[Array, ""]})))


def checked(function: Any) -> Any:
    """Decorate with beartype; a protocol among the names that the function sees becomes `runtime_checkable`."""
    for value in list(function.__globals__.values()):
        if isinstance(value, type) and getattr(value, "_is_protocol", False) and "paircredit" in value.__module__:
            typing.runtime_checkable(value)
    return _beartype(function)
