"""A Transformer over the steps of one episode: every step sees every other, the future included."""

from __future__ import annotations

import dataclasses
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from paircredit.errors import PaircreditError, unknown_name
from paircredit.networks.layers import Dense
from paircredit.settings import setting

Positions = Literal["sinusoidal", "learned", "none"]
_NOT_SEEN = -1e9
"""Attention score of what is not to be looked at."""


@dataclasses.dataclass(frozen=True)
class TransformerSpec:
    """Sizes of a Transformer, and what about it is open."""

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
    """Every vector with mean 0 and deviation 1, then scaled and shifted."""

    scale: Float[Array, " D"]
    shift: Float[Array, " D"]

    @classmethod
    def start(cls, width: int) -> LayerNorm:
        """Scale 1, shift 0."""
        return cls(jnp.ones((width,), dtype=float), jnp.zeros((width,), dtype=float))

    def __call__(self, x: Float[Array, "N D"]) -> Float[Array, "N D"]:
        """The normed vectors."""
        centred = x - jnp.mean(x, axis=-1, keepdims=True)
        variance = jnp.mean(jnp.square(centred), axis=-1, keepdims=True)
        return centred * jax.lax.rsqrt(variance + 1e-5) * self.scale[None] + self.shift[None]


class Attention(eqx.Module):
    """Heads of scaled dot-product attention. One matrix makes queries, keys and values of all heads."""

    inwards: Dense
    outwards: Dense
    heads: int = eqx.field(static=True)

    @classmethod
    def random(cls, key: Key[Array, ""], width: int, heads: int) -> Attention:
        """Fan-in normal weights, biases of 0."""
        one, two = jax.random.split(key)
        return cls(Dense.random(one, width, 3 * width), Dense.random(two, width, width), heads)

    def __call__(self, x: Float[Array, "N D"], seen: Bool[Array, " N"]) -> Float[Array, "N D"]:
        """What every token gathers from those that are to be seen."""
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
        """Fan-in normal weights, biases of 0."""
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
        """The tokens after this block."""
        x = x + self.attention(self.first_norm(x), seen)
        return x + self.narrow(jax.nn.relu(self.wide(self.second_norm(x))))


class Transformer(eqx.Module):
    """Positions, some blocks, a last norm."""

    places: Float[Array, "N D"] | None
    blocks: tuple[Block, ...]
    norm: LayerNorm
    spec: TransformerSpec = eqx.field(static=True)

    @classmethod
    def random(cls, key: Key[Array, ""], tokens: int, spec: TransformerSpec) -> Transformer:
        """Fan-in normal weights.

        Args:
            key: of the weights.
            tokens: how many there are in a full episode.
            spec: sizes.
        """
        if spec.width % spec.heads or spec.width % 2:
            raise PaircreditError(
                f"A Transformer of width {spec.width} with {spec.heads} heads cannot be built: "
                "the width must be even and a multiple of the number of heads."
            )
        if spec.positions not in ("sinusoidal", "learned", "none"):
            raise unknown_name("kind of positions", spec.positions, ("sinusoidal", "learned", "none"))
        below, *above = jax.random.split(key, spec.blocks + 1)
        learned = spec.positions == "learned"
        return cls(
            places=jax.random.normal(below, (tokens, spec.width), dtype=float) if learned else None,
            blocks=tuple(Block.random(one, spec) for one in above),
            norm=LayerNorm.start(spec.width),
            spec=spec,
        )

    def __call__(self, tokens: Float[Array, "N D"], seen: Bool[Array, " N"]) -> Float[Array, "N D"]:
        """What becomes of the tokens of one episode; `seen` marks those that are no padding."""
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
