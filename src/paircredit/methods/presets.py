"""Named hyperparameters: what a method starts from, by the kind of environment.

A preset is a stack of layers, the later of which win. Settings are dotted names of fields. `a2c:lambda_` is for that
method alone and wins over what all methods are told; a setting of a group that a method does not have (the outer loop
of A2C) is passed over. `paircredit list METHOD ENVIRONMENT` shows what comes out, and which layer said so.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from paircredit.errors import PaircreditError, refuse_unknown

Settings = Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Layer:
    """Some settings, by dotted name with or without the method that they are for, on top of other layers."""

    name: str
    settings: Settings
    on: tuple[Layer, ...] = ()

    def stack(self) -> Iterator[Layer]:
        """The layers below and then this one: what counts more after what counts less."""
        for below in self.on:
            yield from below.stack()
        yield self


class Chosen(NamedTuple):
    """A value, and the layer that chose it."""

    value: Any
    layer: str


_KEY_TO_DOOR_PAPER = Layer(
    "key-to-door, paper",
    {
        "inner.learning_rate": 2e-4,
        "inner.value_learning_rate": 2e-4,
        "inner.discount": 0.998,
        "inner.entropy_cost": 0.05,
        "inner.episodes": 16,
        "inner.standardise": True,
        "inner.differentiate_statistics": True,
        "inner.initial_scale": 1.0,
        "outer.learning_rate": 2e-5,
        "outer.clip_norm": None,
        "outer.lambda_": 1.0,
        "network.lag": "scalar",
        "a2c:lambda_": 0.5,
        "tvt:inner.discount": 0.92,
        "tvt:inner.standardise": False,
        "a2c-rr:inner.discount": 0.92,
        "a2c-rr:lambda_": 0.5,
        "meta-lambda:outer.learning_rate": 1e-6,
        "meta-lambda:outer.lambda_": 1.0,
        "rgm:outer.learning_rate": 1e-6,
        "rgm:outer.lambda_": 1.0,
        "rgm:transformer.width": 256,
        "synthetic-returns:lambda_": 0.5,
        "synthetic-returns:contribution_learning_rate": 2e-4,
    },
)
_KEY_TO_DOOR = Layer(
    "key-to-door, default",
    {
        "outer.learning_rate": 1e-4,
        "outer.lambda_": 0.9,
        "network.lag": "sinusoidal",
        "meta-pwr:inner.differentiate_statistics": False,
        "meta-pwtd:inner.differentiate_statistics": False,
    },
    on=(_KEY_TO_DOOR_PAPER,),
)
_KEY_TO_DOOR_SMALL = Layer(
    "key-to-door, small",
    {
        "meta-pwr:inner.differentiate_statistics": True,
        "meta-pwtd:inner.differentiate_statistics": True,
        "network.lag": "one-hot",
        "inner.learning_rate": 2e-3,
        "inner.value_learning_rate": 2e-3,
        "outer.learning_rate": 3e-3,
        "meta-lambda:outer.learning_rate": 1e-3,
        "rgm:inner.entropy_cost": 0.1,
        "rgm:outer.learning_rate": 1e-4,
        "rgm:outer.lambda_": 0.5,
        "rgm:transformer.width": 32,
        "synthetic-returns:contribution_learning_rate": 2e-3,
        "synthetic-returns:head_width": 32,
        "network.filters": (8, 8),
        "network.picture_width": 64,
        "network.trunk": (64, 64),
        "network.pair_width": 32,
        "tvt:inner.learning_rate": 2e-3,
        "tvt:inner.discount": 0.99,
        "tvt:inner.second_moment_decay": 0.999,
        "tvt:lambda_": 0.5,
        "tvt:value_cost": 0.1,
        "tvt:picture_cost": 5.0,
        "tvt:memory.width": 32,
        "tvt:memory.encoder": 64,
        "tvt:memory.controller": 32,
        "tvt:memory.hidden": 32,
        "a2c-rr:prediction.learning_rate": 1e-3,
        "a2c-rr:prediction.width": 64,
        "a2c-rr:prediction.cells": 16,
        "a2c-rr:prediction.start": "xavier",
    },
    on=(_KEY_TO_DOOR,),
)
_BSUITE_PAPER = Layer(
    "bsuite, paper",
    {
        "inner.learning_rate": 3e-4,
        "inner.value_learning_rate": 3e-4,
        "inner.discount": 1.0,
        "inner.entropy_cost": 0.05,
        "inner.episodes": 1,
        "inner.initial_scale": 1.0,
        "outer.learning_rate": 3e-5,
        "outer.clip_norm": 0.01,
        "outer.lambda_": 1.0,
        "network.trunk": (64, 64),
        "network.pair_width": 64,
        "network.lag": "scalar",
        "rgm:outer.learning_rate": 1e-4,
        "rgm:outer.clip_norm": None,
        "tvt:inner.discount": 0.92,
        "synthetic-returns:contribution_learning_rate": 3e-4,
    },
)
_BSUITE = Layer(
    "bsuite, default",
    {
        "network.lag": "one-hot",
        "meta-pwr:inner.entropy_cost": 0.025,
        "meta-pwtd:inner.entropy_cost": 0.025,
    },
    on=(_BSUITE_PAPER,),
)
"""Pair weights start at ½, and so do advantages that are not standardised: half the bonus keeps A2C's balance of the
two (docs/reproduction.md)."""
_ATARI_PAPER = Layer(
    "atari, paper",
    {
        "inner.optimiser": "rmsprop",
        "inner.learning_rate": 7e-4,
        "inner.value_learning_rate": 7e-4,
        "inner.second_moment_decay": 0.99,
        "inner.epsilon": 1e-5,
        "inner.epsilon_in_root": False,
        "inner.clip_norm": 0.5,
        "inner.discount": 0.99,
        "inner.entropy_cost": 0.01,
        "inner.episodes": 16,
        "inner.standardise": True,
        "inner.differentiate_statistics": True,
        "inner.initial_scale": 0.01,
        "outer.learning_rate": 3e-5,
        "outer.clip_norm": 0.05,
        "outer.entropy_cost": 0.01,
        "outer.lambda_": 0.95,
        "a2c:lambda_": 0.95,
        "a2c:network.shared": True,
        "meta-pwtd:network.shared": True,
        "meta-pwtd:inner.value_lambda": 0.95,
        "a2c-rr:lambda_": 0.95,
        "a2c-rr:network.shared": True,
        "a2c-rr:mixing": "quality",
        "a2c-rr:prediction.inputs": "change",
        "a2c-rr:prediction.scaling": "largest",
        "a2c-rr:prediction.auxiliary": 0.5,
        "a2c-rr:prediction.clip_norm": 0.5,
        "a2c-rr:prediction.steps": 512,
        "a2c-rr:prediction.chunk": 128,
        "a2c-rr:prediction.capacity": 128,
        "a2c-rr:prediction.batch_size": 8,
        "a2c-rr:prediction.warm_up": 32,
        "a2c-rr:prediction.every": 100,
        "a2c-rr:prediction.epochs": 100,
        "network.trunk": (512, 512),
        "network.pair_width": 256,
        "network.lag": "scalar",
    },
)
_ATARI = Layer(
    "atari, default",
    {
        "meta-pwtd:inner.differentiate_statistics": False,
        "network.lag": "one-hot",
    },
    on=(_ATARI_PAPER,),
)
_ATARI_SMALL = Layer(
    "atari, small",
    {
        "network.trunk": (64, 64),
        "network.pair_width": 32,
        "a2c-rr:prediction.learning_rate": 1e-3,
        "a2c-rr:prediction.width": 64,
        "a2c-rr:prediction.cells": 16,
        "a2c-rr:prediction.steps": 128,
        "a2c-rr:prediction.chunk": None,
        "a2c-rr:prediction.epochs": 5,
    },
    on=(_ATARI,),
)
_MINATAR_NETWORK = Layer(
    "minatar, sizes",
    {
        "inner.epsilon_in_root": True,
        "network.filters": (16, 16),
        "network.picture_width": 128,
        "network.trunk": (128, 128),
        "network.pair_width": 64,
    },
)
_MINATAR_PAPER = Layer("minatar, paper", {}, on=(_ATARI_PAPER, _MINATAR_NETWORK))
_MINATAR = Layer("minatar, default", {}, on=(_ATARI, _MINATAR_NETWORK))
_MINATAR_SMALL = Layer(
    "minatar, small",
    {
        "inner.epsilon_in_root": True,
        "network.filters": (8, 8),
        "network.picture_width": 64,
    },
    on=(_ATARI_SMALL,),
)
_TABLES_SMALL = Layer(
    "tables, small",
    {
        "network.trunk": (16, 16),
        "rgm:transformer.width": 16,
        "rgm:transformer.blocks": 2,
        "tvt:inner.learning_rate": 3e-3,
        "tvt:memory.width": 16,
        "tvt:memory.encoder": 32,
        "tvt:memory.controller": 16,
        "tvt:memory.hidden": 16,
        "a2c-rr:prediction.learning_rate": 1e-3,
        "a2c-rr:prediction.width": 32,
        "a2c-rr:prediction.cells": 16,
    },
)
_PROBE = Layer(
    "tables, probe",
    {
        "inner.learning_rate": 0.1,
        "inner.value_learning_rate": 0.1,
        "inner.entropy_cost": 0.0,
        "inner.discount": 0.9,
        "tvt:inner.learning_rate": 3e-3,
        "tvt:memory.width": 8,
        "tvt:memory.encoder": 16,
        "tvt:memory.controller": 8,
        "tvt:memory.hidden": 16,
        "tvt:memory.top_reads": 4,
        "tvt:network.trunk": (16, 16),
        "a2c-rr:prediction.learning_rate": 3e-3,
        "a2c-rr:prediction.width": 32,
        "a2c-rr:prediction.cells": 8,
        "a2c-rr:network.trunk": (16, 16),
        "synthetic-returns:contribution_learning_rate": 0.1,
    },
)

_NOTHING = Layer("", {})
_PRESETS: dict[str, tuple[str, dict[str, Layer]]] = {
    "default": (
        "the paper's hyperparameters, and better ones where docs/reproduction.md has the evidence",
        {"tables": _NOTHING, "key-to-door": _KEY_TO_DOOR, "bsuite": _BSUITE, "minatar": _MINATAR, "atari": _ATARI},
    ),
    "paper": (
        "the paper's hyperparameters, gaps filled as docs/reproduction.md says",
        {
            "tables": _NOTHING,
            "key-to-door": _KEY_TO_DOOR_PAPER,
            "bsuite": _BSUITE_PAPER,
            "minatar": _MINATAR_PAPER,
            "atari": _ATARI_PAPER,
        },
    ),
    "small": (
        "small networks, larger steps, colours that are easy to tell apart, smaller pictures: for a laptop",
        {
            "tables": _TABLES_SMALL,
            "key-to-door": _KEY_TO_DOOR_SMALL,
            "minatar": _MINATAR_SMALL,
            "atari": _ATARI_SMALL,
        },
    ),
    "probe": ("large steps and γ = 0.9, for the probe environments", {"tables": _PROBE}),
}

_ENVIRONMENT_SETTINGS: dict[tuple[str, str], Settings] = {
    ("small", "key-to-door"): {"palette": "dark"},
    ("small", "atari"): {"size": 42},
}
"""What a preset changes about an environment (or all of a family), where it does."""

_TRAINING: dict[tuple[str, str], dict[str, int]] = {
    ("small", "key-to-door"): {"frames": 4_800_000, "seeds": 1},
    ("default", "key-to-door"): {"frames": 20_000_000, "seeds": 10},
    ("paper", "key-to-door"): {"frames": 50_000_000, "seeds": 10},
}
"""How long and with how many seeds to train, where nobody says."""

_NETWORK_ENVIRONMENTS = ("key-to-door", "bsuite", "minatar", "atari")
"""Environments (or what stands before the / in their names) that tables cannot represent."""

_OPTIONAL = ("outer", "network")
"""Fields that not every method has."""


def presets() -> dict[str, str]:
    """Names and one-line summaries of all presets."""
    return {name: summary for name, (summary, _) in _PRESETS.items()}


def layers() -> list[Layer]:
    """All layers, what lies below before what lies on it."""
    named = {layer.name: layer for _, kinds in _PRESETS.values() for top in kinds.values() for layer in top.stack()}
    return list(named.values())


def preset_settings(preset: str, env: str, method: str, fields: Collection[str]) -> dict[str, Any]:
    """The settings of a preset for a method with these fields on an environment, by dotted name."""
    return {name: choice.value for name, choice in preset_choices(preset, env, method, fields).items()}


def preset_choices(preset: str, env: str, method: str, fields: Collection[str]) -> dict[str, Chosen]:
    """What a preset chooses for a method with these fields, by dotted name, and which of its layers did."""
    refuse_unknown("preset", preset, _PRESETS)
    family = env.partition("/")[0]
    kind = family if family in _NETWORK_ENVIRONMENTS else "tables"
    by_kind = _PRESETS[preset][1]
    if kind not in by_kind:
        fitting = [name for name, (_, kinds) in _PRESETS.items() if kind in kinds]
        raise PaircreditError(f"The preset {preset!r} is not made for {env}; those for it are {', '.join(fitting)}.")
    chosen = {}
    for wanted in ("", method):
        for layer in by_kind[kind].stack():
            for name, value in layer.settings.items():
                owner, _, own = name.rpartition(":")
                group = own.partition(".")[0]
                if owner == wanted and (group in fields or group not in _OPTIONAL):
                    chosen[own] = Chosen(value, layer.name)
    return chosen


def preset_environment(preset: str, env: str) -> dict[str, Any]:
    """What a preset changes about the environment's settings; mostly nothing."""
    return dict(_ENVIRONMENT_SETTINGS.get((preset, env.partition("/")[0]), {}))


def preset_training(preset: str, env: str) -> dict[str, int]:
    """How long and with how many seeds to train, where nobody says: `frames` and `seeds`."""
    return dict(_TRAINING.get((preset, env), {}))
