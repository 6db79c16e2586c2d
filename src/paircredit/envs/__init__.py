"""Environments: pure functions whose parameters are data."""

from paircredit.envs.dag import DagConfig
from paircredit.envs.dm_env import dm_environment
from paircredit.envs.key_to_door import KeyToDoorConfig
from paircredit.envs.protocol import Discrete, EnvSpec, Pixels, TabularModel, Vector
from paircredit.envs.registry import environment_config, environments, make_environment, register_environment
from paircredit.envs.umbrella import UmbrellaConfig

__all__ = [
    "DagConfig",
    "Discrete",
    "EnvSpec",
    "KeyToDoorConfig",
    "Pixels",
    "TabularModel",
    "UmbrellaConfig",
    "Vector",
    "dm_environment",
    "environment_config",
    "environments",
    "make_environment",
    "register_environment",
]
