"""What runs have learned: parameters of the first member, to act again, and tables of pair weights of all members."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from paircredit.envs.protocol import Environment
from paircredit.errors import PaircreditError
from paircredit.experiments.spec import TrainingSpec, resolve
from paircredit.methods.loops import Trained
from paircredit.methods.rule import Method
from paircredit.runs.files import read_file
from paircredit.runs.read import Run, read_arrays, read_run
from paircredit.training import LoopState
from paircredit.training.members import stack_members
from paircredit.types import PyTree, Trajectory
from paircredit.weights.tables import MatrixWeights

LARGEST_SNAPSHOTS = 2**24
"""Snapshots of the weights are kept over training where all of them together have no more entries than this."""


def first_parameters(learners: Any) -> PyTree:
    """The parameters of the first of stacked learners, which a run keeps in learner.npz."""
    return jax.tree.map(_first, _parameters(learners))


def first_settings(spec: TrainingSpec) -> tuple[Any, Environment]:
    """The method and the environment of the first member, whose parameters are kept."""
    first = next(resolve(spec))
    return first.method, first.env


def load_learner(run: Run, method: Method, env: Environment) -> Any:
    """The learner of a run's first member (see `first_settings`): networks, and optimiser states as at the start."""

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


def load_weights(source: Path, states: int) -> np.ndarray:
    """Weight tables [N, S, S] from a run folder, or from an npz or npy file with a table (or several)."""
    if source.is_dir():
        arrays = read_run(source).arrays()
    else:
        arrays = read_arrays(read_file(source), source)
        arrays = {"weights": arrays[""]} if "" in arrays else arrays  # an npy file
    if "weights" not in arrays:
        raise PaircreditError(f"{source} has no array called 'weights', only {', '.join(sorted(arrays)) or 'none'}.")
    tables = np.asarray(arrays["weights"])
    tables = tables[None] if tables.ndim == 2 else tables
    if tables.ndim != 3 or tables.shape[1:] != (states, states) or not len(tables):
        raise PaircreditError(
            f"The weights in {source} have shape {arrays['weights'].shape}, but this environment needs "
            f"({states}, {states}) or several of that."
        )
    if not np.issubdtype(tables.dtype, np.floating) or not (np.abs(tables) <= np.finfo(np.float32).max).all():
        raise PaircreditError(f"The weights in {source} must be finite floating-point numbers that float32 can hold.")
    return tables


def has_tables(methods: Sequence[Any], state: LoopState) -> bool:
    """Whether the members learn weights that can be written down as tables."""
    if not methods[0].learns_weights:
        return False
    return isinstance(state.learner.weights.parameters, MatrixWeights) or isinstance(state.trajectory, Trajectory)


def weight_tables(methods: Sequence[Any], state: LoopState) -> np.ndarray:
    """[M, N, N]: a table's own entries, or what a network says on average about the episodes of the last batch."""
    weights = state.learner.weights.parameters
    if isinstance(weights, MatrixWeights):
        return np.asarray(jax.vmap(lambda w: w.matrix())(weights))
    return np.asarray(_mean_over_episodes(stack_members(methods), state.learner, state.trajectory))


def may_be_kept(methods: Sequence[Any], state: LoopState, snapshots: int) -> bool:
    """Whether this many snapshots of the tables are small enough to be kept."""
    if not has_tables(methods, state):
        return False
    weights = state.learner.weights.parameters
    if isinstance(weights, MatrixWeights):
        entries = sum(leaf.size for leaf in jax.tree.leaves(weights))
    else:
        entries = len(methods) * state.trajectory.rewards.shape[-1] ** 2
    return snapshots * entries <= LARGEST_SNAPSHOTS


@jax.jit
def _mean_over_episodes(methods: Any, learners: Any, trajectories: Trajectory) -> jax.Array:
    def member(method: Any, learner: Any, trajectory: Trajectory) -> jax.Array:
        return jnp.mean(method.credit(learner, trajectory).weights, axis=0)

    return jax.vmap(member)(methods, learners, trajectories)
