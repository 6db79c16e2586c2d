"""Sizes of the networks, and the choices about them that the paper leaves open."""

from __future__ import annotations

import dataclasses
from typing import Literal

import jax
import jax.numpy as jnp

LagEncoding = Literal["one-hot", "scalar", "sinusoidal"]
PairPerception = Literal["auto", "shared", "own"]
PairBackend = Literal["auto", "dense", "tiled", "whole", "kernel"]
Precision = Literal["auto", "float32", "bfloat16"]


def dtype_between_layers(precision: Precision, parameters: jnp.dtype) -> jnp.dtype:
    """The type of the numbers between layers, given the type of the parameters."""
    low = precision == "bfloat16" or (precision == "auto" and jax.default_backend() == "gpu")
    return jnp.dtype(jnp.bfloat16) if low else parameters


@dataclasses.dataclass(frozen=True)
class NetworkSpec:
    """Sizes of the networks that are built where tables do not fit; ignored where they do."""

    filters: tuple[int, int] = (16, 32)
    """Filters of the two 3×3 convolutions (paper, KtD appendix)."""
    picture_width: int = 512
    """Units of the dense layer after the convolutions (paper, KtD appendix)."""
    trunk: tuple[int, int] = (512, 256)
    """Units of the two dense layers after the flags, or of the two layers for vectors (paper, KtD appendix)."""
    shared: bool = False
    """One perception module for policy and value, trained by one optimiser (paper, on Atari); A2C, A2C-RR and Meta-PWTD
    can."""
    pair_perception: PairPerception = "auto"
    """Whether the pair network sees the features of the value network, without gradient, or has a perception module
    of its own: `shared` for pictures, `own` for vectors (paper, KtD and bsuite appendices), or by name."""
    pair_width: int = 256
    """Channels of the pair network (paper, KtD appendix)."""
    lag: LagEncoding = "one-hot"
    """How the pair network sees a time difference (the paper does not say; see docs/reproduction.md)."""
    backend: PairBackend = "auto"
    """How the pair network is computed: its kernels on a GPU, tiles elsewhere, or by name (our choice)."""
    precision: Precision = "auto"
    """Numbers between the layers of policy and value networks: bfloat16 on a GPU, float32 elsewhere, or by name;
    parameters, losses and the pair network are float32 always (our choice, see docs/performance.md)."""
