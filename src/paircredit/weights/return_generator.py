"""The meta-network of RGM: a weight for every reward of an episode, from the whole episode.

A Transformer reads the steps of one episode: every step sees every other, the future included.
"""

from __future__ import annotations

import dataclasses
from typing import Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from paircredit.envs.protocol import EnvSpec
from paircredit.errors import PaircreditError, refuse_unknown
from paircredit.networks.layers import Dense, NetworkSpec
from paircredit.networks.perception import PerceptionModule, perception_of
from paircredit.settings import setting
from paircredit.types import Trajectory

Bound = Literal["linear", "twice-sigmoid"]
Positions = Literal["sinusoidal", "learned", "none"]
_NOT_SEEN = -1e9
"""Attention score of what is not to be looked at."""


@dataclasses.dataclass(frozen=True)
class TransformerSpec:
    """Sizes of a Transformer, and the choices that the paper leaves open."""

    blocks: int = setting(4, "Blocks", "paper, KtD appendix, RGM", at_least=0)
    heads: int = setting(4, "Attention heads per block", "paper, KtD appendix, RGM", at_least=1)
    width: int = setting(
        64, "Channels of a token; the paper does not say", "our choice: 64 with tables, 256 in Key-to-Door", at_least=1
    )
    widening: int = setting(
        4, "Hidden units of the dense layers of a block, in widths", "Vaswani et al. 2017", at_least=1
    )
    positions: Positions = setting(
        "sinusoidal", "How tokens know when they are; the paper does not say", "Vaswani et al. 2017"
    )


class LayerNorm(eqx.Module):
    """Gives every vector mean 0 and deviation 1, then scales and shifts it.

    `equinox.nn` has this layer and the attention below under other parameter names, with other initial weights and a
    matrix each for queries, keys and values: kept learners would not load, and no lines would be saved.
    """

    scale: Float[Array, " D"]
    shift: Float[Array, " D"]

    @classmethod
    def start(cls, width: int) -> LayerNorm:
        return cls(jnp.ones((width,), dtype=float), jnp.zeros((width,), dtype=float))

    def __call__(self, x: Float[Array, "N D"]) -> Float[Array, "N D"]:
        centred = x - jnp.mean(x, axis=-1, keepdims=True)
        variance = jnp.mean(jnp.square(centred), axis=-1, keepdims=True)
        return centred * jax.lax.rsqrt(variance + 1e-5) * self.scale[None] + self.shift[None]


class Attention(eqx.Module):
    """Scaled dot-product attention. One matrix makes queries, keys and values of all heads."""

    inwards: Dense
    outwards: Dense
    heads: int = eqx.field(static=True)

    @classmethod
    def random(cls, key: Key[Array, ""], width: int, heads: int) -> Attention:
        one, two = jax.random.split(key)
        return cls(Dense.random(one, width, 3 * width), Dense.random(two, width, width), heads)

    def __call__(self, x: Float[Array, "N D"], seen: Bool[Array, " N"]) -> Float[Array, "N D"]:
        """What every token gathers from the tokens that are `seen`."""
        count, width = x.shape
        queries, keys, values = jnp.moveaxis(self.inwards(x).reshape(count, 3, self.heads, width // self.heads), 1, 0)
        scores = jnp.einsum("qhd,khd->hqk", queries, keys) / np.sqrt(width // self.heads)
        shares = jax.nn.softmax(jnp.where(seen[None, None, :], scores, _NOT_SEEN))
        return self.outwards(jnp.einsum("hqk,khd->qhd", shares, values).reshape(count, width))


class Block(eqx.Module):
    """x + attention(norm(x)), then x + dense(relu(dense(norm(x)))): the norms come first."""

    first_norm: LayerNorm
    attention: Attention
    second_norm: LayerNorm
    wide: Dense
    narrow: Dense

    @classmethod
    def random(cls, key: Key[Array, ""], spec: TransformerSpec) -> Block:
        keys = jax.random.split(key, 3)
        hidden = spec.widening * spec.width
        return cls(
            LayerNorm.start(spec.width),
            Attention.random(keys[0], spec.width, spec.heads),
            LayerNorm.start(spec.width),
            Dense.random(keys[1], spec.width, hidden),
            Dense.random(keys[2], hidden, spec.width),
        )

    def __call__(self, x: Float[Array, "N D"], seen: Bool[Array, " N"]) -> Float[Array, "N D"]:
        x = x + self.attention(self.first_norm(x), seen)
        return x + self.narrow(jax.nn.relu(self.wide(self.second_norm(x))))


class Transformer(eqx.Module):
    """Positions, blocks, and a last norm."""

    places: Float[Array, "N D"] | None
    blocks: tuple[Block, ...]
    norm: LayerNorm
    spec: TransformerSpec = eqx.field(static=True)

    @classmethod
    def random(cls, key: Key[Array, ""], tokens: int, spec: TransformerSpec) -> Transformer:
        """Fan-in normal weights, for episodes of up to so many tokens."""
        if spec.width % spec.heads or spec.width % 2:
            raise PaircreditError(
                f"A Transformer of width {spec.width} with {spec.heads} heads cannot be built: "
                "the width must be even and a multiple of the number of heads."
            )
        refuse_unknown("kind of positions", spec.positions, get_args(Positions))
        below, *above = jax.random.split(key, spec.blocks + 1)
        learned = spec.positions == "learned"
        return cls(
            places=jax.random.normal(below, (tokens, spec.width), dtype=float) if learned else None,
            blocks=tuple(Block.random(one, spec) for one in above),
            norm=LayerNorm.start(spec.width),
            spec=spec,
        )

    def __call__(self, tokens: Float[Array, "N D"], seen: Bool[Array, " N"]) -> Float[Array, "N D"]:
        """The tokens of one episode after all blocks; `seen` marks those that are no padding."""
        if self.places is not None:
            tokens = tokens + self.places
        elif self.spec.positions == "sinusoidal":
            tokens = tokens + jnp.asarray(sinusoids(*tokens.shape), dtype=tokens.dtype)
        x = jnp.where(seen[:, None], tokens, 0.0)  # attention multiplies padding by 0, which does not undo a NaN
        for block in self.blocks:
            x = block(x, seen)
        return self.norm(x)


def sinusoids(count: int, width: int) -> np.ndarray:
    """Sines and cosines of `count` positions, wavelengths from 2π to 10000·2π (Vaswani et al. 2017)."""
    angles = np.arange(count)[:, None] / 10000.0 ** (np.arange(width // 2)[None, :] / (width // 2))
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


class ReturnGenerator(eqx.Module):
    """β_1 … β_T of an episode (paper, KtD appendix).

    Token t holds S_t, A_t and R_t, for t = 0 … T (R_0 = 0; no action at the end), and β_t, the weight of R_t, is read
    from token t: the one that knows the reward and the state it was paid in. What joins the features of a state has a
    matrix of its own, as in `Perception`.
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

        `bound` says whether β is the output of that layer (`linear`) or 2·sigmoid of it.
        """
        refuse_unknown("bound of the weights", bound, get_args(Bound))
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
