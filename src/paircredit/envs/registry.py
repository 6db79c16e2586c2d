"""Environments by name, for the command line and for experiment specs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any, get_args

from paircredit.envs.atari import GAMES as ATARI_GAMES
from paircredit.envs.atari.environment import AtariConfig
from paircredit.envs.bsuite.sweep import DOMAINS, SWEEP
from paircredit.envs.dag import DagConfig
from paircredit.envs.key_to_door import KeyToDoorConfig
from paircredit.envs.minatar import GAMES, MinAtarConfig
from paircredit.envs.probes import ProbeConfig, ProbeKind
from paircredit.envs.protocol import EnvConfig, Environment
from paircredit.envs.umbrella import UmbrellaConfig
from paircredit.errors import PaircreditError, refuse_unknown, unknown_name
from paircredit.settings import check_kind

_CONFIGS: dict[str, tuple[Callable[..., Any], str]] = {
    "dag": (DagConfig, "binary decisions, paid for last in, first out (paper, tabular experiments)"),
    "key-to-door": (KeyToDoorConfig, "fetch a key, pick noisy apples, open a door (paper, Key-to-Door)"),
    "umbrella": (UmbrellaConfig, "one decision, a noisy day, one reward (paper, illustrative MDP)"),
    **{
        f"probe-{kind}": (partial(ProbeConfig, kind=kind), f"probe: can the method learn {kind}?")
        for kind in get_args(ProbeKind)
    },
    **{
        f"bsuite/{name}": (partial(dataclasses.replace, domain.config), f"bsuite: {domain.summary}")
        for name, domain in DOMAINS.items()
    },
    **{
        f"minatar/{game}": (partial(MinAtarConfig, game=game), f"MinAtar: {summary}")
        for game, (_, summary) in GAMES.items()
    },
    **{f"atari/{game}": (partial(AtariConfig, game=game), "Atari, emulated on the host") for game in ATARI_GAMES},
}


def register_environment(name: str, config: Callable[..., Any], summary: str) -> None:
    """Make an environment known by name.

    Args:
        name: what users type.
        config: a frozen dataclass of plain settings with a `build()` that returns the environment.
        summary: one line for `paircredit list`.
    """
    if name in _CONFIGS:
        raise PaircreditError(f"An environment called {name!r} is registered already.")
    _CONFIGS[name] = (config, summary)


def environment_config(name: str, **settings: object) -> EnvConfig:
    """The settings of a named environment, the given ones replaced."""
    if name not in _CONFIGS:
        raise _as_variant(name) or unknown_name("environment", name, _CONFIGS)
    config: EnvConfig = _CONFIGS[name][0]()
    known = {field.name: field for field in dataclasses.fields(config)}  # type: ignore[arg-type]
    for setting, value in settings.items():
        refuse_unknown(f"setting of {name}", setting, known)
        check_kind(known[setting], value, f"{name}.{setting}")
    return dataclasses.replace(config, **settings)  # type: ignore[type-var]


def _as_variant(name: str) -> PaircreditError | None:
    """The error for an id of bsuite's sweep, which stands for a domain and settings."""
    if (variant := SWEEP.get(name.removeprefix("bsuite/"))) is None:
        return None
    domain = f"bsuite/{name.removeprefix('bsuite/').partition('/')[0]}"
    usual: Any = _CONFIGS[domain][0]()
    changed = {k: v for k, v in dataclasses.asdict(variant).items() if v != getattr(usual, k)}
    options = "".join(f" --env.{key.replace('_', '-')} {value}" for key, value in changed.items())
    return PaircreditError(f"{name} is a variant of {domain}; write {domain} with{options or ' its defaults'}.")


def make_environment(name: str, **settings: object) -> Environment:
    """Build a named environment: `make_environment("dag", depth=8)`."""
    return environment_config(name, **settings).build()


def environments() -> dict[str, str]:
    """Names and one-line summaries of all known environments."""
    return {name: summary for name, (_, summary) in _CONFIGS.items()}
