"""How large the networks are, and what about them is open."""

from __future__ import annotations

import dataclasses
from typing import Literal

import jax
import jax.numpy as jnp

from paircredit.settings import setting

LagEncoding = Literal["one-hot", "scalar", "sinusoidal"]
PairPerception = Literal["auto", "shared", "own"]
PairBackend = Literal["auto", "dense", "tiled", "whole", "kernel"]
Precision = Literal["auto", "float32", "bfloat16"]


def dtype_between_layers(precision: Precision, parameters: jnp.dtype) -> jnp.dtype:
    """The type of the numbers between layers, given that of the parameters."""
    low = precision == "bfloat16" or (precision == "auto" and jax.default_backend() == "gpu")
    return jnp.dtype(jnp.bfloat16) if low else parameters


@dataclasses.dataclass(frozen=True)
class NetworkSpec:
    """Sizes of the networks that are built where tables do not fit; ignored where they do."""

    filters: tuple[int, int] = setting(
        (16, 32), "Filters of the two 3×3 convolutions", "paper, KtD appendix", at_least=1
    )
    picture_width: int = setting(
        512, "Units of the dense layer behind the convolutions", "paper, KtD appendix", at_least=1
    )
    trunk: tuple[int, int] = setting(
        (512, 256),
        "Units of the two dense layers behind the flags, or of the two there are for vectors",
        "paper, KtD appendix",
        at_least=1,
    )
    shared: bool = setting(
        False,
        "One perception module for policy and value, trained by one optimiser; A2C, A2C-RR and Meta-PWTD can",
        "paper, on Atari",
    )
    pair_perception: PairPerception = setting(
        "auto",
        "Whether the pair network sees what the value network's perception module makes of states, without gradient "
        "(`shared`, for pictures), or has its own (`own`, for vectors)",
        "paper, KtD and bsuite appendices",
    )
    pair_width: int = setting(256, "Channels of the pair network", "paper, KtD appendix", at_least=1)
    lag: LagEncoding = setting(
        "one-hot", "How the pair network sees a time difference", "the paper does not say; see docs/reproduction.md"
    )
    backend: PairBackend = setting(
        "auto", "How the pair network is computed: its kernels on a GPU, tiles elsewhere, or by name", "our choice"
    )
    precision: Precision = setting(
        "auto",
        "Numbers between the layers of policy and value networks: bfloat16 on a GPU, float32 elsewhere, or by name; "
        "parameters, losses and the pair network are float32 always",
        "our choice, see docs/performance.md",
    )
