"""Named hyperparameters: what a method starts from, by the kind of environment.

Settings are dotted names of fields. Those under a method's own name are for that method alone; a setting of a field
that a method does not have (the outer loop of A2C) is passed over.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from paircredit.errors import PaircreditError, unknown_name

Settings = Mapping[str, Any]

_KEY_TO_DOOR_PAPER: Settings = {
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
}
_KEY_TO_DOOR: Settings = {
    **_KEY_TO_DOOR_PAPER,
    "outer.learning_rate": 1e-4,
    "outer.lambda_": 0.9,
    "network.lag": "sinusoidal",
    "meta-pwr:inner.differentiate_statistics": False,
    "meta-pwtd:inner.differentiate_statistics": False,
}
_KEY_TO_DOOR_SMALL: Settings = {
    **_KEY_TO_DOOR,
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
}
_BSUITE_PAPER: Settings = {
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
}
_BSUITE: Settings = {
    **_BSUITE_PAPER,
    "network.lag": "one-hot",
    "meta-pwr:inner.entropy_cost": 0.025,
    "meta-pwtd:inner.entropy_cost": 0.025,
}
"""Pair weights start at ½, and so do advantages that are not standardised: half the bonus keeps A2C's balance of the
two (docs/reproduction.md)."""
_ATARI_PAPER: Settings = {
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
}
_ATARI: Settings = {
    **_ATARI_PAPER,
    "meta-pwtd:inner.differentiate_statistics": False,
    "network.lag": "one-hot",
}
_ATARI_SMALL_NETWORK: Settings = {
    "network.trunk": (64, 64),
    "network.pair_width": 32,
    "a2c-rr:prediction.learning_rate": 1e-3,
    "a2c-rr:prediction.width": 64,
    "a2c-rr:prediction.cells": 16,
    "a2c-rr:prediction.steps": 128,
    "a2c-rr:prediction.chunk": None,
    "a2c-rr:prediction.epochs": 5,
}
_ATARI_SMALL: Settings = {**_ATARI, **_ATARI_SMALL_NETWORK}
_MINATAR_NETWORK: Settings = {
    "inner.epsilon_in_root": True,
    "network.filters": (16, 16),
    "network.picture_width": 128,
    "network.trunk": (128, 128),
    "network.pair_width": 64,
}
_MINATAR_PAPER: Settings = {**_ATARI_PAPER, **_MINATAR_NETWORK}
_MINATAR: Settings = {**_ATARI, **_MINATAR_NETWORK}
_MINATAR_SMALL: Settings = {
    **_ATARI_SMALL,
    "inner.epsilon_in_root": True,
    "network.filters": (8, 8),
    "network.picture_width": 64,
}
_TABLES_SMALL: Settings = {
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
}
_PROBE: Settings = {
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
}

_PRESETS: dict[str, tuple[str, dict[str, Settings]]] = {
    "default": (
        "the paper's hyperparameters, and better ones where docs/reproduction.md has the evidence",
        {"tables": {}, "key-to-door": _KEY_TO_DOOR, "bsuite": _BSUITE, "minatar": _MINATAR, "atari": _ATARI},
    ),
    "paper": (
        "the paper's hyperparameters, gaps filled as docs/reproduction.md says",
        {
            "tables": {},
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

_NETWORK_ENVIRONMENTS = {name: name for name in ("key-to-door", "bsuite", "minatar", "atari")}
"""Environments (or what stands before the / in their names) that tables cannot represent, and whose settings they start
from."""

_OPTIONAL = ("outer", "network")
"""Fields that not every method has."""


def presets() -> dict[str, str]:
    """Names and one-line summaries of all presets."""
    return {name: summary for name, (summary, _) in _PRESETS.items()}


def preset_settings(preset: str, env: str, method: str, fields: Collection[str]) -> dict[str, Any]:
    """The settings of a preset for a method on an environment.

    Args:
        preset: its name.
        env: name of the environment.
        method: name of the method.
        fields: the fields that the method has.
    """
    if preset not in _PRESETS:
        raise unknown_name("preset", preset, _PRESETS)
    kind = _NETWORK_ENVIRONMENTS.get(env.partition("/")[0], "tables")
    by_kind = _PRESETS[preset][1]
    if kind not in by_kind:
        fitting = [name for name, (_, kinds) in _PRESETS.items() if kind in kinds]
        raise PaircreditError(f"The preset {preset!r} is not made for {env}; those for it are {', '.join(fitting)}.")
    settings = {}
    for name, value in by_kind[kind].items():
        owner, _, own = name.rpartition(":")
        if owner in ("", method) and (own.split(".")[0] in fields or own.split(".")[0] not in _OPTIONAL):
            settings[own] = value
    return settings


def preset_environment(preset: str, env: str) -> dict[str, Any]:
    """What a preset changes about the environment's settings; mostly nothing."""
    return dict(_ENVIRONMENT_SETTINGS.get((preset, env.partition("/")[0]), {}))


def preset_training(preset: str, env: str) -> dict[str, int]:
    """How long and with how many seeds to train, where nobody says: `frames` and `seeds`."""
    return dict(_TRAINING.get((preset, env), {}))
