"""Methods by name."""

from __future__ import annotations

from typing import Any, NamedTuple

from paircredit.envs.registry import environments
from paircredit.errors import PaircreditError, refuse_unknown
from paircredit.methods.a2c import A2C
from paircredit.methods.a2c_rr import A2CRR
from paircredit.methods.agent import ActorCritic
from paircredit.methods.hpwr import HPWR
from paircredit.methods.loops import OuterLoop
from paircredit.methods.meta_lambda import MetaLambda
from paircredit.methods.meta_pwr import MetaPWR
from paircredit.methods.meta_pwtd import MetaPWTD
from paircredit.methods.presets import preset_choices, preset_settings
from paircredit.methods.rgm import RGM
from paircredit.methods.rule import Method
from paircredit.methods.synthetic_returns import SyntheticReturns
from paircredit.methods.tvt import TVT
from paircredit.settings import About, fields_of, replace_dotted, settings_in

_METHODS: dict[str, tuple[Any, str]] = {
    "a2c": (ActorCritic(A2C()), "actor-critic with a fixed λ; the regular return at λ = 1"),
    "a2c-rr": (ActorCritic(A2CRR()), "actor-critic on rewards redistributed by a return predictor"),
    "h-pwr": (ActorCritic(HPWR()), "pairwise weighted rewards, handcrafted weights"),
    "meta-lambda": (
        ActorCritic(MetaLambda(), outer=OuterLoop()),
        "the λ-estimator, a λ for every state learned by metagradient",
    ),
    "meta-pwr": (
        ActorCritic(MetaPWR(), outer=OuterLoop()),
        "pairwise weighted rewards, weights learned by metagradient",
    ),
    "meta-pwtd": (
        ActorCritic(MetaPWTD(), outer=OuterLoop()),
        "pairwise weighted TD errors, weights learned by metagradient",
    ),
    "tvt": (TVT(), "value transported along the reads of a reconstructive memory"),
    "rgm": (  # step size of η: paper, bsuite appendix; 1e-6 in Key-to-Door
        ActorCritic(RGM(), outer=OuterLoop(learning_rate=1e-4)),
        "one weight per reward of an episode, made by a Transformer that learns by metagradient",
    ),
    "synthetic-returns": (
        ActorCritic(SyntheticReturns()),
        "states that bring rewards later, found by regression, are paid for at once",
    ),
}


def register_method(name: str, method: Method, summary: str) -> None:
    """Make a method known by name.

    Args:
        name: what users type.
        method: with the hyperparameters that it has by default: an `ActorCritic` with your credit rule, or an agent of
            your own (`paircredit.methods.Method`).
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
    refuse_unknown("method", name, _METHODS)
    refuse_unknown("environment", env, environments())  # another name would silently have the settings for tables
    method = _METHODS[name][0]
    method = replace_dotted(method, preset_settings(preset, env, name, fields_of(method)), name)
    return replace_dotted(method, settings, name)


class Resolved(NamedTuple):
    """One hyperparameter as a method gets it; the layer of a preset or `the method` has set it."""

    name: str
    value: Any
    set_by: str
    about: About


def resolved_settings(name: str, preset: str = "default", env: str = "dag") -> list[Resolved]:
    """All hyperparameters of a named method for an environment; arguments as for `make_method`."""
    method = make_method(name, preset, env)
    chosen = preset_choices(preset, env, name, fields_of(method))
    return [
        Resolved(dotted, value, chosen[dotted].layer if dotted in chosen else "the method", known)
        for dotted, value, known in settings_in(method)
    ]


def method_name(method: Any) -> str:
    """What users call a method, for sentences about it; one that nobody registered has the name of its class."""
    kind = _kind(method)
    return next((name for name, (known, _) in _METHODS.items() if _kind(known) is kind), kind.__name__)


def _kind(method: Any) -> type:
    return type(method.rule) if isinstance(method, ActorCritic) else type(method)


def methods() -> dict[str, str]:
    """Names and one-line summaries of all known methods."""
    return {name: summary for name, (_, summary) in _METHODS.items()}
