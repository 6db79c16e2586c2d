"""λ as a function of the state: how much of what lies behind a state is trusted to rewards, and not to its value."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from paircredit.envs.protocol import Discrete, EnvSpec
from paircredit.networks.build import num_states
from paircredit.networks.layers import Dense
from paircredit.networks.senses import perception_of
from paircredit.networks.spec import NetworkSpec
from paircredit.types import PyTree


class LambdaTable(eqx.Module):
    """λ(s) = sigmoid(logits[s])."""

    logits: Float[Array, " S"]

    def __call__(self, observation: Int[Array, ""]) -> Float[Array, ""]:
        """The λ of one state."""
        return jax.nn.sigmoid(self.logits[observation])


class LambdaNetwork(eqx.Module):
    """λ(s) = sigmoid(linear(perception(s))), with a perception module of its own (paper, KtD appendix)."""

    perception: Any
    head: Dense

    def __call__(self, observation: PyTree) -> Float[Array, ""]:
        """The λ of one observation."""
        return jax.nn.sigmoid(self.head(self.perception(observation))[0])


def lambda_for(key: Key[Array, ""], spec: EnvSpec, network: NetworkSpec, start: float, scale: float) -> Any:
    """A λ(s) that is nearly constant: a table, or a network where tables do not fit.

    Args:
        key: of the initial parameters.
        spec: of the environment.
        network: sizes.
        start: the λ that all states start near.
        scale: the logits of a table start uniform in ± this; the last layer of a network is so scaled. At 0 every
            state starts at `start` exactly.
    """
    middle = jnp.log(jnp.asarray(start, dtype=float)) - jnp.log1p(-jnp.asarray(start, dtype=float))
    if not isinstance(spec.observation, Discrete):
        below, top = jax.random.split(key)
        head = Dense.random(top, network.trunk[1], 1, scale)
        return LambdaNetwork(perception_of(below, spec.observation, network), Dense(head.weight, middle[None]))
    return LambdaTable(middle + scale * jax.random.uniform(key, (num_states(spec),), dtype=float, minval=-1, maxval=1))
