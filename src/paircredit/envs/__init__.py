"""Environments: pure functions whose parameters are data."""

from paircredit.envs.dag import Dag, DagConfig
from paircredit.envs.dm_env import DmEnvironment, dm_environment
from paircredit.envs.key_to_door import KeyToDoor, KeyToDoorConfig, KeyToDoorState
from paircredit.envs.probes import Probe, ProbeConfig
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
from paircredit.envs.umbrella import Umbrella, UmbrellaConfig

__all__ = [
    "Dag",
    "DagConfig",
    "Discrete",
    "DmEnvironment",
    "EnvSpec",
    "Environment",
    "KeyToDoor",
    "KeyToDoorConfig",
    "KeyToDoorState",
    "Pixels",
    "Probe",
    "ProbeConfig",
    "Summarises",
    "TabularEnvironment",
    "TabularModel",
    "Umbrella",
    "UmbrellaConfig",
    "Vector",
    "dm_environment",
    "environment_config",
    "environments",
    "make_environment",
    "register_environment",
]
