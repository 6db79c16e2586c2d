"""An experiment is data: a list of runs, each a frozen dataclass of plain values; how large it is; what it comes to."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from paircredit.envs.registry import make_environment
from paircredit.errors import PaircreditError, unknown_name
from paircredit.methods.registry import make_method
from paircredit.runs.manifest import NamedSpec
from paircredit.runs.read import Run
from paircredit.runs.shape import misfit
from paircredit.settings import replace_dotted
from paircredit.training.loop import Protocol

S = TypeVar("S")
TAKEN = ("member", "seed", "update", "episodes", "frames", "episode_return", "expected_return", "weights", "mask")
"""Names that the rows of a metrics file have anyway."""


@dataclasses.dataclass(frozen=True)
class Variant:
    """What some members of a run have for themselves; what is None is as for all of the run.

    Attributes:
        labels: what tells its members from others in the metrics: texts or numbers by name.
        env_settings: added to, or put in the place of, those of the run.
        method_settings: likewise.
        seeds: of its members, where variants that are alike must not repeat each other.
        label: a text, short for the label `variant`.
    """

    labels: Mapping[str, Any] | None = None
    env_settings: Mapping[str, Any] | None = None
    method_settings: Mapping[str, Any] | None = None
    seeds: tuple[int, ...] | None = None
    label: Any = None

    @property
    def all_labels(self) -> dict[str, Any]:
        """Its labels, the short one among them."""
        return ({} if self.label is None else {"variant": self.label}) | dict(self.labels or {})


@dataclasses.dataclass(frozen=True)
class TrainingSpec:
    """Train the members of one method on one environment, as one program.

    Attributes:
        name: of the run, unique in the experiment; also its folder.
        updates: iterations (outer updates under the reset protocol).
        seeds: one member each.
        method_settings: fields of the method, dotted (`inner.learning_rate`).
        inner_updates: per reset.
        weights_from: name of an earlier run (or path of a file) whose weights are used.
        learn_weights: whether the outer loop runs.
        value_masks: masked-value probe: the optimal value function, 0 up to this layer; members are mask × seed.
        variants: members with other settings in the same program; members are variant × seed.
        tags: what figures and claims look for.
    """

    name: str
    env: str
    method: str
    updates: int
    seeds: tuple[int, ...]
    env_settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    method_settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    preset: str = "paper"
    protocol: Protocol = "online"
    inner_updates: int = 16
    weights_from: str | None = None
    learn_weights: bool = True
    value_masks: tuple[int, ...] = ()
    variants: tuple[Variant, ...] = ()
    tags: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class UmbrellaVarianceSpec:
    """Sample episodes of umbrella MDPs and compare Monte Carlo with pairwise weights on the decision's advantage.

    Every length T is tried with every variance σ² of the noise, whose mean is μ, for this many episodes each.
    """

    name: str
    lengths: tuple[int, ...]
    variances: tuple[float, ...]
    mean: float
    episodes: int
    seed: int = 0


@dataclasses.dataclass(frozen=True)
class CreditSpec:
    """Compare the gradients of all estimators with the exact one, on the same episodes, a batch for each estimate.

    The policies prefer the best action in every state by a logit (0: uniform). Learned weights for rewards and for TD
    errors come from earlier runs.
    """

    name: str
    env: str
    env_settings: Mapping[str, Any]
    episodes: int
    batch: int = 8
    preferences: tuple[float, ...] = (0.0, 1.0)
    pwr_weights_from: str | None = None
    pwtd_weights_from: str | None = None
    seed: int = 0


RunSpec = TrainingSpec | UmbrellaVarianceSpec | CreditSpec
KINDS: dict[str, type[RunSpec]] = {
    "training": TrainingSpec,
    "umbrella-variance": UmbrellaVarianceSpec,
    "credit": CreditSpec,
}
Scale = Literal["smoke", "short", "paper"]
SCALES: tuple[Scale, ...] = ("smoke", "short", "paper")


@dataclasses.dataclass(frozen=True)
class Experiment:
    """A named list of runs, to be made in order."""

    name: str
    scale: str
    runs: tuple[RunSpec, ...]


@dataclasses.dataclass(frozen=True)
class Recipe(Generic[S]):
    """A named experiment with a line for `paircredit list`; `runs` makes its runs, in order, of what a scale says."""

    name: str
    summary: str
    scales: Mapping[str, S]
    runs: Callable[[S], Iterable[RunSpec]]

    def at(self, scale: str) -> Experiment:
        """The experiment at a scale."""
        if scale not in self.scales:
            raise unknown_name(f"scale of {self.name}", scale, self.scales)
        return Experiment(self.name, scale, tuple(self.runs(self.scales[scale])))


def as_json(spec: Any) -> dict[str, Any]:
    """A spec as JSON for a manifest; variants, and what they do not say, are left out."""
    values = {key: list(v) if isinstance(v, tuple) else v for key, v in dataclasses.asdict(spec).items()}
    if "variants" in values:
        values["variants"] = [{k: v for k, v in variant.items() if v is not None} for variant in values["variants"]]
        values = {key: v for key, v in values.items() if v or key != "variants"}
    return values


def kind_of(spec: RunSpec) -> str:
    """The kind of run that a spec describes, as it stands in the manifest."""
    return next(kind for kind, own in KINDS.items() if isinstance(spec, own))


def from_json(kind: str, values: Mapping[str, Any]) -> RunSpec:
    """The spec that `as_json` was given; one that this version does not know is refused."""
    if kind not in KINDS:
        raise unknown_name("kind of run", kind, KINDS)
    fields = {field.name: field for field in dataclasses.fields(KINDS[kind])}
    if unknown := sorted(set(values) - set(fields)):
        raise PaircreditError(f"The spec of the run has a field {unknown[0]!r}, which this version does not know.")
    nothing = dataclasses.MISSING
    needed = [name for name, own in fields.items() if own.default is nothing and own.default_factory is nothing]
    if missing := [name for name in needed if name not in values]:
        raise PaircreditError(f"The spec of the run has no field {missing[0]!r}, which this version needs.")
    if found := misfit(values, KINDS[kind]):
        raise PaircreditError(f"The spec of the run cannot be used: {found}.")
    known = {name: _with_tuples(value) for name, value in values.items()}
    if "variants" in known:
        known["variants"] = tuple(_variant(variant) for variant in known["variants"])
    return KINDS[kind](**known)


def _variant(values: Mapping[str, Any]) -> Variant:
    fields = [field.name for field in dataclasses.fields(Variant)]
    for name in values:
        if name not in fields:
            raise unknown_name("part of a variant", name, fields)
    return Variant(**values)


def refuse_misshapen(runs: Sequence[Run]) -> None:
    """Refuse runs whose specs have not the fields of their kind; only `variants` was not always written."""
    for run in runs:
        fields = {field.name for field in dataclasses.fields(KINDS[run.kind])} if run.kind in KINDS else set()
        missing = sorted(fields - {"variants"} - run.spec.keys())
        found = f"{missing[0]} is missing" if missing else misfit(run.spec, KINDS.get(run.kind, NamedSpec))
        if found:
            raise PaircreditError(f"The spec of the run {run.path} cannot be used: {found}.")


def _with_tuples(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_with_tuples(entry) for entry in value)
    return {key: _with_tuples(entry) for key, entry in value.items()} if isinstance(value, dict) else value


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
    """Every variant of a spec in turn; a spec without any has one that changes nothing."""
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
