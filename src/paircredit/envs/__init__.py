"""Environments: pure functions whose parameters are data."""

from paircredit.envs.dm_env import dm_environment
from paircredit.envs.protocol import (
    Discrete,
    Environment,
    EnvSpec,
    Pixels,
    Summarises,
    TabularEnvironment,
    TabularModel,
    Vector,
)
from paircredit.envs.registry import environment_config, environments, make_environment, register_environment

__all__ = [
    "Discrete",
    "EnvSpec",
    "Environment",
    "Pixels",
    "Summarises",
    "TabularEnvironment",
    "TabularModel",
    "Vector",
    "dm_environment",
    "environment_config",
    "environments",
    "make_environment",
    "register_environment",
]
