"""All pairs of a piece that may hold several episodes: pairs, and their normalisation, stay within an episode.

Pieces are short (20 steps on Atari), so that every pair's vector is in memory at once; derivatives by JAX.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from paircredit.weights.pairs.problem import NORMALISER_EPSILON, PairParameters, pair_mask


def segmented_pair_logits(
    parameters: PairParameters, valid: Bool[Array, " T"], episode: Int[Array, " T"]
) -> Float[Array, "T T"]:
    """The logits z of all pairs, as if every episode of the piece had been given by itself.

    Args:
        parameters: embeddings of the steps and what makes logits of them.
        valid: the steps that are no padding.
        episode: a number per step, the same for steps of the same episode.
    """
    p = parameters
    steps = jnp.arange(valid.shape[0])
    lag = jnp.maximum(steps[None, :] - steps[:, None], 0)
    together = (episode[:, None] == episode[None, :]) & valid[:, None] & valid[None, :]
    mask = pair_mask(valid) & together
    fused = p.rows[:, None] * p.columns[None, :] * p.lags[lag]
    same = together.astype(fused.dtype)
    counts = jnp.maximum(same @ jnp.sum(mask, axis=1).astype(fused.dtype), 1.0)[:, None]

    def mean_of_episode(x: Float[Array, "T T D"]) -> Float[Array, "T D"]:
        of_rows = jnp.sum(jnp.where(mask[..., None], x, 0.0), axis=1)
        return jnp.matmul(same, of_rows, precision=jax.lax.Precision.HIGHEST) / counts

    centred = jnp.where(mask[..., None], fused - mean_of_episode(fused)[:, None], 0.0)
    deviation = jnp.sqrt(mean_of_episode(jnp.square(centred)) + NORMALISER_EPSILON)[:, None]
    hidden = jax.nn.relu(p.scale * centred / deviation + p.shift)
    return jnp.where(mask, hidden @ p.out, 0.0)
