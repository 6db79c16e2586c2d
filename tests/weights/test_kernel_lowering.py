"""The kernels as Triton would get them: on a machine without a GPU, its dialect can at least verify them."""

from __future__ import annotations

import contextlib

import jax
import jax.numpy as jnp
import pytest

from paircredit.weights.pairs import PairParameters
from paircredit.weights.pairs.kernel import kernel_pair_logits


def a_gpu_in_the_mind():
    """Newer versions of JAX want to know for which GPU; any will do."""
    device = getattr(jax.sharding, "AbstractDevice", None)
    if device is None or jax.__version_info__ < (0, 11):
        return contextlib.nullcontext()
    mesh = jax.sharding.AbstractMesh((), (), abstract_device=device("NVIDIA H100", None, "gpu"))
    return jax.sharding.use_abstract_mesh(mesh)


@pytest.fixture
def verified(monkeypatch):
    """One True for every kernel that was lowered and is valid."""
    lowering = pytest.importorskip("jax._src.pallas.triton.lowering")
    lower, found = lowering.lower_jaxpr_to_triton_module, []

    def and_verify(*arguments, **named):
        result = lower(*arguments, **named)
        found.append(result.module.operation.verify())
        return result

    monkeypatch.setattr(lowering, "lower_jaxpr_to_triton_module", and_verify)
    return found


@pytest.mark.filterwarnings("ignore:The Pallas Triton backend:DeprecationWarning")
@pytest.mark.parametrize(("steps", "width"), [(9, 64), (120, 256), (1001, 64)])
def test_all_kernels_are_valid(verified, steps, width):
    def both(rows, vectors, cotangent):
        parameters = PairParameters(rows, rows, rows, vectors, vectors, vectors)
        logits, back = jax.vjp(lambda p: kernel_pair_logits(p, jnp.ones((steps,), dtype=bool)), parameters)
        return logits, back(cotangent)

    shapes = ((3, steps, width), (3, width), (3, steps, steps))
    given = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
    with a_gpu_in_the_mind():
        jax.jit(jax.vmap(both)).trace(*given).lower(lowering_platforms=("cuda",))
    assert len(verified) >= 7 and all(verified), "two moments, logits, sums for the derivative, three walks"
