"""Choosing a weight function from what an environment shows: a table over pairs of states, or the pair network."""

from __future__ import annotations

from typing import Any

import jax
from jaxtyping import Array, Key

from paircredit.envs.protocol import Discrete, EnvSpec, Vector
from paircredit.errors import unknown_name
from paircredit.networks.perception import perception_of
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
    if network.pair_perception not in ("auto", "shared", "own"):
        raise unknown_name("perception of the pair network", network.pair_perception, ("auto", "shared", "own"))
    own = network.pair_perception == "own" or (
        network.pair_perception == "auto" and isinstance(spec.observation, Vector)
    )
    perception = perception_of(jax.random.fold_in(key, 1), spec.observation, network) if own else None
    return PairNetwork.random(key, spec.horizon, network, sees_signal, perception)
