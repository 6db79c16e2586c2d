"""A run that is stopped half-way and gone on with, beside the same run without a stop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.experiments import TrainingSpec, training_run
from paircredit.experiments.training_run import Silent, run_training


def stopped_and_whole(spec: TrainingSpec, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The learner that both runs end with, equal in every bit, as are the metrics; the runs are in two folders."""
    learners, real = [], training_run.train

    def watched(*arguments: Any, stop_after: int | None = None, **more: Any) -> Any:
        inform, seen = more.pop("on_chunk"), []

        def on_chunk(chunk: Any) -> None:
            inform(chunk)
            seen.append(chunk)
            if len(seen) == stop_after:
                raise KeyboardInterrupt

        state = real(*arguments, on_chunk=on_chunk, **more)
        learners.append(state.learner)
        return state

    monkeypatch.setattr(training_run, "train", watched)
    run_training(spec, folder / "whole", Silent(), checkpoint_seconds=0.0)
    with monkeypatch.context() as stopped, pytest.raises(KeyboardInterrupt):
        stopped.setattr(training_run, "train", lambda *a, **m: watched(*a, stop_after=2, **m))
        run_training(spec, folder / "stopped", Silent(), checkpoint_seconds=0.0)
    run_training(spec, folder / "stopped", Silent(), checkpoint_seconds=0.0)
    assert len(learners) == 2
    for a, b in zip(*(jax.tree.leaves(learner) for learner in learners), strict=True):
        if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        np.testing.assert_array_equal(a, b)
    metrics = [(folder / name / spec.name / "metrics.jsonl").read_bytes() for name in ("whole", "stopped")]
    assert metrics[0] == metrics[1]
    return learners[0]
