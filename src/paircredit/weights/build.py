"""Choosing a weight function from what an environment shows: a table over pairs of states, or the pair network."""

from __future__ import annotations

from typing import Any

from jaxtyping import Array, Key

from paircredit.envs.protocol import Discrete, EnvSpec
from paircredit.networks.spec import NetworkSpec
from paircredit.weights.network import PairNetwork
from paircredit.weights.tabular import SigmoidTable


def weights_for(key: Key[Array, ""], spec: EnvSpec, network: NetworkSpec, scale: float, sees_signal: bool) -> Any:
    """Weights near ½, to be learned.

    Args:
        key: of the initial parameters.
        spec: of the environment.
        network: sizes of the pair network.
        scale: a table starts uniform in ± this.
        sees_signal: whether a network also sees what it weighs.
    """
    if isinstance(spec.observation, Discrete):
        return SigmoidTable.random(key, spec.observation.size, scale)
    return PairNetwork.random(key, spec.horizon, network, sees_signal)
