"""From what a spec says to what runs: the method with all its settings, the environment and the seeds of a variant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from paircredit.envs.registry import make_environment
from paircredit.errors import PaircreditError
from paircredit.experiments.spec import TAKEN, TrainingSpec, Variant
from paircredit.methods.registry import make_method
from paircredit.settings import replace_dotted


class Resolved(NamedTuple):
    """What a variant of a spec comes to: the method, the environment, and what tells its members from others."""

    method: Any
    env: Any
    labels: dict[str, Any]
    seeds: tuple[int, ...]


def resolve_method(method: str, preset: str, env: str, settings: Mapping[str, Any]) -> Any:
    """A method by its name, with a preset for an environment and further settings in dotted names."""
    return replace_dotted(make_method(method, preset, env), settings, method)


def resolve(spec: TrainingSpec) -> Iterator[Resolved]:
    """Every variant of a spec in turn; a spec without any has one that changes nothing.

    Raises:
        PaircreditError: something in it is not known, or labels do not tell its variants apart.
    """
    method = resolve_method(spec.method, spec.preset, spec.env, spec.method_settings)
    for variant in variants_of(spec):
        yield Resolved(
            replace_dotted(method, variant.method_settings or {}, spec.method),
            make_environment(spec.env, **{**spec.env_settings, **(variant.env_settings or {})}),
            variant.all_labels,
            spec.seeds if variant.seeds is None else tuple(variant.seeds),
        )


def variants_of(spec: TrainingSpec) -> list[Variant]:
    """The variants of a spec, if their labels tell them apart; one that says nothing where there are none."""
    if not spec.variants:
        return [Variant()]
    first = spec.variants[0].all_labels
    seen: list[dict[str, Any]] = []
    for labels in (variant.all_labels for variant in spec.variants):
        if set(labels) != set(first) or not labels:
            raise PaircreditError(
                f"Every variant needs the same labels, but {_named(first)} and {_named(labels)} were given."
            )
        for name, value in labels.items():
            if name in TAKEN:
                raise PaircreditError(f"A label cannot be called {name!r}, which the metrics have already.")
            if not isinstance(value, str | bool | int | float) or isinstance(value, str) != isinstance(
                first[name], str
            ):
                raise PaircreditError(
                    f"The label {name!r} must be a text in all variants or a number in all of them, not {value!r}."
                )
    for variant in spec.variants:
        if variant.all_labels in seen:
            raise PaircreditError(f"Two variants have the same labels, {_named(variant.all_labels)}; tell them apart.")
        seen.append(variant.all_labels)
    return list(spec.variants)


def _named(labels: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in labels.items()) or "none"
