"""Shape checks that answer with a sentence."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from paircredit.errors import PaircreditError


def expect_shape(name: str, array: Array, shape: tuple[int, ...]) -> None:
    """Refuse an array of another shape than `shape`."""
    if array.shape != shape:
        raise PaircreditError(f"{name} has shape {array.shape}, but {shape} is needed here.")


def trajectory_length(name: str, array: Array) -> int:
    """The T of a one-dimensional array; batches are to be vmapped."""
    if array.ndim != 1:
        raise PaircreditError(
            f"{name} has shape {array.shape}, but estimators take one trajectory of shape (T,); "
            "use jax.vmap for a batch."
        )
    return int(array.shape[0])


def per_step(name: str, value: Array | float, length: int, dtype: jnp.dtype) -> Float[Array, " T"]:
    """A scalar or one number per step, as one number per step."""
    array = jnp.asarray(value, dtype=dtype)
    if array.ndim == 0:
        return jnp.broadcast_to(array, (length,))
    expect_shape(name, array, (length,))
    return array


def valid_steps(valid: Bool[Array, " T"] | None, length: int) -> Bool[Array, " T"]:
    """The mask itself, or all steps where none was given."""
    if valid is None:
        return jnp.ones((length,), dtype=bool)
    expect_shape("valid", valid, (length,))
    return valid
