"""Members with other settings in one run: what a spec's variants say, checked."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

from paircredit.errors import PaircreditError, unknown_name
from paircredit.experiments.spec import TrainingSpec
from paircredit.runs.shape import misfit

FIELDS = ("label", "labels", "env_settings", "method_settings", "seeds")
TAKEN = ("member", "seed", "update", "episodes", "frames", "episode_return", "expected_return", "weights", "mask")
"""Names that the rows of a metrics file have anyway."""


@dataclasses.dataclass(frozen=True)
class _VariantShape:
    """What the parts of a variant are, where they are given."""

    label: Any = ""
    labels: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    env_settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    method_settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    seeds: tuple[int, ...] = ()


class Variant(NamedTuple):
    """What tells some members of a run from the others, and the seeds of these."""

    labels: dict[str, Any]
    env_settings: dict[str, Any]
    method_settings: dict[str, Any]
    seeds: tuple[int, ...]


def variants_of(spec: TrainingSpec) -> list[Variant]:
    """The variants of a run; a run without any has one that changes nothing.

    Raises:
        PaircreditError: something in them is not known, or their labels do not tell them apart.
    """
    variants = [_variant(variant, spec.seeds) for variant in spec.variants]
    if not variants:
        return [Variant({}, {}, {}, spec.seeds)]
    first = variants[0].labels
    for variant in variants:
        if set(variant.labels) != set(first) or not variant.labels:
            raise PaircreditError(
                f"Every variant needs the same labels, but {_named(first)} and {_named(variant.labels)} were given."
            )
        for name, value in variant.labels.items():
            if name in TAKEN:
                raise PaircreditError(f"A label cannot be called {name!r}, which the metrics have already.")
            if not isinstance(value, str | bool | int | float) or isinstance(value, str) != isinstance(
                first[name], str
            ):
                raise PaircreditError(
                    f"The label {name!r} must be a text in all variants or a number in all of them, not {value!r}."
                )
    seen: list[dict[str, Any]] = []
    for variant in variants:
        if variant.labels in seen:
            raise PaircreditError(f"Two variants have the same labels, {_named(variant.labels)}; tell them apart.")
        seen.append(variant.labels)
    return variants


def _variant(given: Mapping[str, Any], seeds: tuple[int, ...]) -> Variant:
    for name in given:
        if name not in FIELDS:
            raise unknown_name("part of a variant", name, FIELDS)
    if found := misfit(dict(given), _VariantShape):
        raise PaircreditError(f"A variant of the run cannot be used: {found}.")
    labels = {"variant": given["label"]} if "label" in given else {}
    return Variant(
        labels | dict(given.get("labels", {})),
        dict(given.get("env_settings", {})),
        dict(given.get("method_settings", {})),
        tuple(given.get("seeds", seeds)),
    )


def _named(labels: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in labels.items()) or "none"
