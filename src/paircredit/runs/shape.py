"""JSON from files: parsed so that nothing in it can harm, and compared with the dataclass it was written from.

A sum says that a file is as somebody wrote it, not that this program did. So before a field is used, `misfit` holds the
parsed value against a dataclass: a field without a default must be there, one that is there must be of its type. Fields
that the dataclass does not have are let through, because other versions may know them.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin

MOST_NESTED = 64
"""Deeper nesting than this is refused, before any recursion over it runs out of stack."""
LARGEST_WHOLE, LARGEST_NUMBER = 2**53, 1e300
"""No count, seed or size in a file is larger than the one, no number than the other."""
Count = Annotated[int, "not negative"]
"""A whole number of at least 0."""
SCALARS = frozenset({str, bool, int, float, type(None)})
_WORDS = {str: "a text", bool: "true or false", int: "a whole number", float: "a number", type(None): "nothing"}


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"it holds {name}")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def _decoded(text: str) -> Any:
    try:
        return _DECODER.decode(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def parse_json(content: bytes) -> Any:
    """The value of JSON text; a ValueError if it is none, holds NaN or an infinite number, or is nested too deeply."""
    value = _decoded(content.decode())
    level, depth = [value], 0
    while level := [inner for outer in level if isinstance(outer, dict | list) for inner in _inner(outer)]:
        depth += 1
        if depth > MOST_NESTED:
            raise ValueError("it is nested too deeply")
    return value


def parse_row(line: str) -> dict[str, Any]:
    """A line of metrics: names with one number or text each; a ValueError if it is something else."""
    row = _decoded(line)
    if type(row) is not dict or not all(type(value) in SCALARS for value in row.values()):
        raise ValueError("it is no mapping from names to numbers and texts")
    return row


def json_sum(value: Any) -> str:
    """The SHA-256 sum of a JSON value, without a `sha256` in it; a ValueError if it holds an infinite number."""
    body = {key: part for key, part in value.items() if key != "sha256"} if isinstance(value, dict) else value
    return hashlib.sha256(json.dumps(body, sort_keys=True, allow_nan=False).encode()).hexdigest()


def has_its_sum(value: Any) -> bool:
    """Whether a parsed value is a mapping that holds its own sum as `sha256`."""
    try:
        return isinstance(value, dict) and value.get("sha256") == json_sum(value)
    except ValueError:  # an infinite number, which nobody has written
        return False


def misfit(value: Any, kind: Any, name: str = "") -> str | None:
    """Where a parsed value called `name` is not of a type (a dataclass, or that of a field of one), in words, if so."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any:
        return None
    if origin is Annotated:
        return misfit(value, arguments[0], name) or (_not(value, "0 or more", name) if value < 0 else None)
    if origin in (Union, types.UnionType):
        of_each = [misfit(value, one, name) for one in arguments]
        return None if None in of_each else of_each[0]
    if origin is Literal:
        return None if type(value) is str and value in arguments else _not(value, f"one of {arguments}", name)
    inside = f"{name}." if name else ""
    parts: list[tuple[Any, Any, str]]
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        if type(value) is not dict:
            return _not(value, "a mapping", name)
        fields = _fields(kind)
        if missing := [field for field, (_, needed) in fields.items() if needed and field not in value]:
            return f"{inside}{missing[0]} is missing"
        parts = [(value[field], own, f"{inside}{field}") for field, (own, _) in fields.items() if field in value]
    elif origin is tuple:
        if type(value) not in (list, tuple):
            return _not(value, "a list", name)
        parts = [(part, arguments[0], f"{name}[{index}]") for index, part in enumerate(value)]
    elif origin is not None and issubclass(origin, Mapping):
        if type(value) is not dict:
            return _not(value, "a mapping", name)
        parts = [(part, arguments[1], f"{inside}{key}") for key, part in value.items()]
    else:
        return None if _is_scalar(value, kind) else _not(value, _WORDS[kind], name)
    return next((found for part in parts if (found := misfit(*part)) is not None), None)


@functools.cache
def _fields(kind: Any) -> dict[str, tuple[Any, bool]]:
    """The fields of a dataclass: their types, and whether they are needed."""
    hints, nothing = typing.get_type_hints(kind, include_extras=True), dataclasses.MISSING
    return {
        field.name: (hints[field.name], field.default is nothing and field.default_factory is nothing)
        for field in dataclasses.fields(kind)
    }


def _is_scalar(value: Any, kind: Any) -> bool:
    if kind is float:
        return type(value) in (int, float) and abs(value) < LARGEST_NUMBER
    return type(value) is kind and (kind is not int or abs(value) < LARGEST_WHOLE)


def _inner(outer: Any) -> Iterable[Any]:
    return outer.values() if isinstance(outer, dict) else outer


def _not(value: Any, wanted: str, name: str) -> str:
    return f"{name or 'it'} is {short(value)} and not {wanted}"


def short(value: Any) -> str:
    """A JSON value as text for a sentence, cut where it is long."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "…"
