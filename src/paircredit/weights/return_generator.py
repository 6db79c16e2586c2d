"""The meta-network of RGM: a weight for every reward of an episode, from the whole episode."""

from __future__ import annotations

from typing import Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from paircredit.envs.protocol import EnvSpec
from paircredit.errors import unknown_name
from paircredit.networks.layers import Dense
from paircredit.networks.perception import PerceptionModule, perception_of
from paircredit.networks.spec import NetworkSpec
from paircredit.networks.transformer import Transformer, TransformerSpec
from paircredit.types import Trajectory

Bound = Literal["linear", "twice-sigmoid"]


class ReturnGenerator(eqx.Module):
    """β_1 … β_T of an episode (paper, KtD appendix).

    Token t holds S_t, A_t and R_t, for t = 0 … T (R_0 = 0; no action at the end), and β_t, the weight of R_t, is read
    from token t: the one that knows the reward and the state it was paid in. What joins the features of a state
    has a matrix of its own: the sum is that of one layer on all of it, and no matrix has an odd number of rows, which
    GPUs are slow at.
    """

    perception: PerceptionModule
    project: Dense
    beside: Float[Array, "A_plus_1 D"]
    transformer: Transformer
    out: Dense
    num_actions: int = eqx.field(static=True)
    bound: Bound = eqx.field(static=True)

    @classmethod
    def random(
        cls,
        key: Key[Array, ""],
        spec: EnvSpec,
        network: NetworkSpec,
        transformer: TransformerSpec,
        bound: Bound,
        scale: float,
    ) -> ReturnGenerator:
        """Fan-in normal weights, those of the last layer times `scale`: all β start near 1, the regular return.

        Args:
            key: draws the weights.
            spec: the environment whose episodes it reads.
            network: sizes of the perception module.
            transformer: sizes of the Transformer on top of it.
            bound: whether β is the output of the last layer (`linear`) or 2·sigmoid of it.
            scale: factor on the initial weights of the last layer.
        """
        if bound not in get_args(Bound):
            raise unknown_name("bound of the weights", bound, get_args(Bound))
        keys = jax.random.split(key, 4)
        features = network.trunk[1]
        project = Dense.random(keys[1], features + spec.num_actions + 1, transformer.width)
        last = Dense.random(keys[3], transformer.width, 1, scale)
        return cls(
            perception=perception_of(keys[0], spec.observation, network),
            project=Dense(project.weight[:features], project.bias),
            beside=project.weight[features:],
            transformer=Transformer.random(keys[2], spec.horizon + 1, transformer),
            out=Dense(last.weight, jnp.full((1,), 1.0 if bound == "linear" else 0.0, dtype=float)),
            num_actions=spec.num_actions,
            bound=bound,
        )

    def __call__(self, episode: Trajectory) -> Float[Array, " T"]:
        """`result[k]` is β_{k+1}, the weight of `rewards[k]`, for one episode; on padding it means nothing."""
        features = jax.vmap(self.perception)(episode.observations)
        valid = episode.valid
        rewards = jnp.where(valid, episode.rewards, 0.0).astype(features.dtype)
        actions = jax.nn.one_hot(episode.actions, self.num_actions, dtype=features.dtype)
        actions = jnp.where(valid[:, None], actions, 0.0)
        beside = jnp.concatenate([jnp.pad(actions, ((0, 1), (0, 0))), jnp.pad(rewards, (1, 0))[:, None]], axis=1)
        tokens = self.project(features) + beside @ self.beside
        logits = self.out(self.transformer(tokens, seen=jnp.pad(valid, (1, 0), constant_values=True)))[1:, 0]
        return logits if self.bound == "linear" else 2.0 * jax.nn.sigmoid(logits)
