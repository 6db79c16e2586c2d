"""Settings by name, from files and command lines: what a field cannot be is refused before anything is made of it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

from paircredit.errors import PaircreditError


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: Any) -> bool:
    return _whole(value) or isinstance(value, float)


def _two_whole(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(map(_whole, value))


_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "float": (_number, "a number is"),
    "int": (_whole, "a whole number is"),
    "bool": (lambda value: isinstance(value, bool), "true or false is"),
    "tuple[int, int]": (_two_whole, "two whole numbers are"),
}
"""By the annotation of a field; fields with other annotations are not looked at."""

_RANGES: dict[str, tuple[Callable[[Any], bool], str]] = {
    **dict.fromkeys(
        ("discount", "lambda_", "value_lambda", "mix", "initial_lambda"), (lambda x: 0 <= x <= 1, "lie between 0 and 1")
    ),
    **dict.fromkeys(
        ("first_moment_decay", "second_moment_decay"), (lambda x: 0 <= x < 1, "be at least 0 and less than 1")
    ),
    **dict.fromkeys(
        (
            "learning_rate",
            "value_learning_rate",
            "contribution_learning_rate",
            "epsilon",
            "epsilon_root",
            "l2",
            "blocks",
            "alpha",
            "auxiliary",
            "picture_cost",
            "read_cost",
            "value_cost",
            "warm_up",
        ),
        (lambda x: x >= 0, "be at least 0"),
    ),
    **dict.fromkeys(("clip", "clip_norm"), (lambda x: x > 0, "be above 0")),
    **dict.fromkeys(
        ("episodes", "picture_width", "pair_width", "head_width", "width", "heads", "widening"),
        (lambda x: x >= 1, "be at least 1"),
    ),
    **dict.fromkeys(("filters", "trunk"), (lambda x: min(x) >= 1, "be at least 1 each")),
}
"""Of hyperparameters, by the name of the field."""


def check_kind(field: dataclasses.Field, value: Any, whose: str) -> None:
    """Refuse a value of another kind than the field's; arrays, which hold many members' values, are let through.

    Args:
        field: of a dataclass of settings.
        value: to be put there.
        whose: the setting, for the sentence.

    Raises:
        PaircreditError: it is a text where a number is needed, and so on.
    """
    annotation = field.type if isinstance(field.type, str) else getattr(field.type, "__name__", "")
    kind, _, none = annotation.partition(" | ")
    if kind not in _KINDS or hasattr(value, "dtype") or (none == "None" and value is None):
        return
    fits, what = _KINDS[kind]
    if not fits(value):
        raise PaircreditError(f"{whose} is {value!r}, but {what} needed{' or None' * (none == 'None')}.")


def check_range(field: dataclasses.Field, value: Any, whose: str) -> None:
    """Refuse a hyperparameter that nothing can be learned with.

    Args:
        field: of a method or of one of its parts.
        value: of the field's kind.
        whose: the setting, for the sentence.

    Raises:
        PaircreditError: it lies outside its range.
    """
    if isinstance(value, float) and not math.isfinite(value):
        raise PaircreditError(f"{whose} is {value}; a finite number is needed.")
    if field.name not in _RANGES or hasattr(value, "dtype") or value is None:
        return
    fits, what = _RANGES[field.name]
    if not fits(value):
        raise PaircreditError(f"{whose} is {value}, but must {what}.")
