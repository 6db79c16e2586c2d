"""Methods by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from paircredit.envs.registry import environments
from paircredit.errors import PaircreditError, unknown_name
from paircredit.methods.a2c import A2C
from paircredit.methods.a2c_rr import A2CRR
from paircredit.methods.hpwr import HPWR
from paircredit.methods.meta_lambda import MetaLambda
from paircredit.methods.meta_pwr import MetaPWR
from paircredit.methods.meta_pwtd import MetaPWTD
from paircredit.methods.presets import preset_settings
from paircredit.methods.protocol import Method
from paircredit.methods.rgm import RGM
from paircredit.methods.settings import check_value, replace_dotted
from paircredit.methods.synthetic_returns import SyntheticReturns
from paircredit.methods.tvt import TVT

_METHODS: dict[str, tuple[Callable[..., Any], str]] = {
    "a2c": (A2C, "actor-critic with a fixed λ; the regular return at λ = 1"),
    "a2c-rr": (A2CRR, "actor-critic on rewards redistributed by a return predictor"),
    "h-pwr": (HPWR, "pairwise weighted rewards, handcrafted weights"),
    "meta-lambda": (MetaLambda, "the λ-estimator, a λ for every state learned by metagradient"),
    "meta-pwr": (MetaPWR, "pairwise weighted rewards, weights learned by metagradient"),
    "meta-pwtd": (MetaPWTD, "pairwise weighted TD errors, weights learned by metagradient"),
    "tvt": (TVT, "value transported along the reads of a reconstructive memory"),
    "rgm": (RGM, "one weight per reward of an episode, made by a Transformer that learns by metagradient"),
    "synthetic-returns": (
        SyntheticReturns,
        "states that bring rewards later, found by regression, are paid for at once",
    ),
}


def register_method(name: str, method: Callable[..., Any], summary: str) -> None:
    """Make a method known by name.

    Args:
        name: what users type.
        method: a frozen dataclass of hyperparameters with defaults, see `paircredit.methods.Method`.
        summary: one line for `paircredit list`.
    """
    if name in _METHODS:
        raise PaircreditError(f"A method called {name!r} is registered already.")
    _METHODS[name] = (method, summary)


def make_method(name: str, preset: str = "default", env: str = "dag", **settings: object) -> Method:
    """Build a named method: `make_method("a2c", lambda_=0.9)`.

    Args:
        name: see `methods()`.
        preset: see `presets()`.
        env: name of the environment it is for, or of one like it; presets differ between tables and networks.
        settings: fields of the method to replace.
    """
    if name not in _METHODS:
        raise unknown_name("method", name, _METHODS)
    if env not in environments():  # another name would silently have the settings for tables
        raise unknown_name("environment", env, environments())
    method: Any = _METHODS[name][0]()
    known = {field.name: field for field in dataclasses.fields(method)}
    method = replace_dotted(method, preset_settings(preset, env, name, known), name)
    for setting, value in settings.items():
        if setting not in known:
            raise unknown_name(f"setting of {name}", setting, known)
        check_value(getattr(method, setting), known[setting], value, f"{name}.{setting}")
    result: Method = dataclasses.replace(method, **settings)
    return result


def method_name(method: Any) -> str:
    """What users call a method, for sentences about it; one that nobody registered has the name of its class."""
    kind = type(method)
    return next((name for name, (known, _) in _METHODS.items() if known is kind), kind.__name__)


def methods() -> dict[str, str]:
    """Names and one-line summaries of all known methods."""
    return {name: summary for name, (_, summary) in _METHODS.items()}
