"""What a finished run learned, to act again: the parameters of its first member, without optimiser states."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from paircredit.envs.protocol import Environment
from paircredit.envs.registry import make_environment
from paircredit.experiments.spec import TrainingSpec
from paircredit.experiments.variants import variants_of
from paircredit.methods.loops import Trained
from paircredit.methods.protocol import Method
from paircredit.methods.registry import make_method
from paircredit.runs.read import Run
from paircredit.settings import replace_dotted
from paircredit.types import PyTree


def first_parameters(learners: Any) -> PyTree:
    """The parameters of the first of stacked learners, which a run keeps in learner.npz."""
    return jax.tree.map(_first, _parameters(learners))


def first_settings(spec: TrainingSpec) -> tuple[Any, Environment]:
    """The method and the environment of the first member, whose parameters are kept."""
    variant = variants_of(spec)[0]
    method = replace_dotted(make_method(spec.method, spec.preset, spec.env), spec.method_settings, spec.method)
    env = make_environment(spec.env, **{**spec.env_settings, **variant.env_settings})
    return replace_dotted(method, variant.method_settings, spec.method), env


def load_learner(run: Run, method: Method, env: Environment) -> Any:
    """The learner of a run's first member, with optimiser states as at the start of training.

    Args:
        run: where it was trained; its policies are networks.
        method: what it was trained with; see `first_settings`.
        env: where it acted.

    Raises:
        PaircreditError: the run keeps no learner, or a damaged one, or one of another shape.
    """

    def start(key: Key[Array, ""]) -> Any:
        return method.init(key, env)

    def states(key: Key[Array, ""]) -> PyTree:  # of zeros mostly: compiled, nothing random is left in it
        return jax.tree.map(lambda part: part.state if _is_trained(part) else (), start(key), is_leaf=_is_trained)

    key = jax.random.key(0)
    shapes = jax.eval_shape(start, key)
    kept = run.learner(_parameters(shapes))
    return jax.tree.map(
        lambda part, own, state: Trained(own, state) if _is_trained(part) else own,
        shapes,
        kept,
        jax.jit(states)(key),
        is_leaf=_is_trained,
    )


def _parameters(learner: Any) -> PyTree:
    return jax.tree.map(lambda part: part.parameters if _is_trained(part) else part, learner, is_leaf=_is_trained)


def _is_trained(part: Any) -> bool:
    return isinstance(part, Trained)


def _first(leaf: Any) -> Any:
    """On the host, which saves compiling a program for every shape; random keys cannot leave the device."""
    return leaf[0] if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else np.asarray(leaf)[0]
