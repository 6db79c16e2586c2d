"""Settings: a hyperparameter is one line, and is known by its dotted name.

`rate: float = setting(0.01, "Step size", "paper: 2e-4 in Key-to-Door", at_least=0)` says its default, what it means,
where its value comes from and what it may be. Help texts, the tables in the docs, manifests and checks of what users
type are made of these lines.

A method is a tree of dataclasses, so a hyperparameter has a name such as `inner.learning_rate`. The fields of a credit
rule stand among those of its agent: `lambda_`, not `rule.lambda_`.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import equinox as eqx

from paircredit.errors import PaircreditError, unknown_name

RULE = "rule"
"""The field whose own fields stand beside it."""
OUTER = "outer"
"""A group that is None, and has no settings then, in methods without an outer loop."""
ABOUT = "about"


@dataclasses.dataclass(frozen=True)
class About:
    """What is known of a setting beside its default: what it means, where the default comes from, and its range.

    A range is that of a number, or of each of several; `above` and `below` are bounds that it may not reach.
    """

    meaning: str
    source: str = ""
    at_least: int | float | None = None
    at_most: int | float | None = None
    above: int | float | None = None
    below: int | float | None = None

    @property
    def help(self) -> str:
        return f"{self.meaning} ({self.source})." if self.source else f"{self.meaning}."

    @property
    def range(self) -> str:
        """What the value must do, in words; empty where everything goes."""
        if self.at_least is not None and self.at_most is not None:
            return f"lie between {_written(self.at_least)} and {_written(self.at_most)}"
        bounds = {"at least": self.at_least, "at most": self.at_most, "above": self.above, "less than": self.below}
        words = [f"{word} {_written(bound)}" for word, bound in bounds.items() if bound is not None]
        return f"be {' and '.join(words)}" if words else ""

    def holds(self, value: int | float) -> bool:
        return not (
            (self.at_least is not None and value < self.at_least)
            or (self.at_most is not None and value > self.at_most)
            or (self.above is not None and value <= self.above)
            or (self.below is not None and value >= self.below)
        )


def setting(
    default: Any, meaning: str = "", source: str = "", *, static: bool | None = None, **bounds: int | float
) -> Any:
    """A field of a method, or of a group of its settings; environments have docstrings in place of meanings.

    `meaning` is a sentence without its full stop; `source` says where the default comes from, and what the paper says
    elsewhere. Floats are traced: a sweep compiles once, and members may differ in them. What shapes the program is
    `static`; left out, all but floats, None and modules are. Bounds are `at_least`, `at_most`, `above` and `below`.
    """
    if static is None:
        static = not (default is None or isinstance(default, float | eqx.Module))
    return eqx.field(default=default, static=static, metadata={ABOUT: About(meaning, source, **bounds)})


def _written(bound: int | float) -> str:
    return f"{bound:,}" if isinstance(bound, int) else f"{bound:g}"


def about(field: dataclasses.Field) -> About:
    """What is known of a setting; fields that are no settings have no meaning."""
    return field.metadata.get(ABOUT, About(""))


def fields_of(group: Any) -> dict[str, dataclasses.Field]:
    """The settings of a method, or of a group of them, by name; groups that are None are left out."""
    found: dict[str, dataclasses.Field] = {}
    for field in dataclasses.fields(group):
        if field.name == RULE:
            found |= fields_of(group.rule)
        elif not (field.name == OUTER and group.outer is None):
            found[field.name] = field
    return found


def values_of(group: Any) -> dict[str, Any]:
    """The values of `fields_of`; groups are values, too."""
    own = vars(group)
    return {name: own[name] if name in own else vars(own[RULE])[name] for name in fields_of(group)}


def settings_in(group: Any, prefix: str = "", source: str = "") -> Iterator[tuple[str, Any, About]]:
    """(dotted name, value, what is known of it) for every setting of a method, those of its groups included.

    A setting that does not tell its source has that of its group.
    """
    fields = fields_of(group)
    for name, value in values_of(group).items():
        known = about(fields[name])
        known = dataclasses.replace(known, source=known.source or source)
        if dataclasses.is_dataclass(value):
            yield from settings_in(value, f"{prefix}{name}.", known.source)
        else:
            yield f"{prefix}{name}", value, known


def with_values(group: Any, **values: Any) -> Any:
    """The same method or group with other values, by the names of `fields_of`, unchecked."""
    own = {name: value for name, value in values.items() if name in vars(group)}
    if len(own) < len(values):
        rule = {name: value for name, value in values.items() if name not in own}
        own[RULE] = dataclasses.replace(group.rule, **rule)
    return dataclasses.replace(group, **own)


def replace_dotted(group: Any, settings: Mapping[str, Any], name: str) -> Any:
    """Replace settings of a method or a group by dotted name: `{"inner.learning_rate": 0.1}`.

    Lists become tuples: settings may come from JSON. `name` is what users call the group, for sentences about settings
    that there are not, or that cannot have such a value.
    """
    for dotted, value in settings.items():
        first, dot, rest = dotted.partition(".")
        known, present = fields_of(group), values_of(group)
        if first not in known or (dot and not dataclasses.is_dataclass(present[first])):
            raise unknown_name(f"setting of {name}", dotted, known)
        value = tuple(value) if isinstance(value, list) else value
        if dot:
            value = replace_dotted(present[first], {rest: value}, f"{name}.{first}")
        else:
            check_value(present[first], known[first], value, f"{name}.{first}")
        group = with_values(group, **{first: value})
    return group


def check_value(present: Any, field: dataclasses.Field, value: Any, whose: str) -> None:
    """Refuse a value that a setting cannot have in the place of its present one: of another kind, out of its range.

    Arrays, which hold many members' values, are let through; `whose` is the setting's name for the sentence.
    """
    if dataclasses.is_dataclass(present) and not isinstance(value, type(present)):
        raise PaircreditError(f"{whose} is a group of settings, so it cannot be {value!r}; name one of them.")
    check_kind(field, value, whose)
    if isinstance(value, float) and not math.isfinite(value):
        raise PaircreditError(f"{whose} is {value}; a finite number is needed.")
    known = about(field)
    numbers = [x for x in (value if isinstance(value, tuple) else (value,)) if isinstance(x, int | float)]
    if not all(map(known.holds, numbers)):
        raise PaircreditError(f"{whose} is {value}, but must {known.range}{' each' * isinstance(value, tuple)}.")


def check_all(group: Any, whose: str) -> None:
    """Refuse a group of settings if one of them cannot be what it is."""
    values = values_of(group)
    for name, field in fields_of(group).items():
        check_value(values[name], field, values[name], f"{whose}.{name}")


def check_kind(field: dataclasses.Field, value: Any, whose: str) -> None:
    """Refuse a value of another kind than the annotation of a setting names; arrays are let through."""
    annotation = field.type if isinstance(field.type, str) else inspect.formatannotation(field.type)
    kind, _, none = annotation.partition(" | ")
    if kind not in _KINDS or (eqx.is_array_like(value) and not isinstance(value, bool | int | float)):
        return
    if none == "None" and value is None:
        return
    fits, what = _KINDS[kind]
    if not fits(value):
        raise PaircreditError(f"{whose} is {value!r}, but {what} needed{' or None' * (none == 'None')}.")


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "float": (lambda value: _whole(value) or isinstance(value, float), "a number is"),
    "int": (_whole, "a whole number is"),
    "bool": (lambda value: isinstance(value, bool), "true or false is"),
    "tuple[int, int]": (
        lambda value: isinstance(value, tuple) and [*map(_whole, value)] == [True, True],
        "two whole numbers are",
    ),
}
"""By the annotation of a field; fields with other annotations are not looked at."""
