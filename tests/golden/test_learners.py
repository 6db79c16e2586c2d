"""What every method has learned after ten updates, on every kind of environment: numbers that no rebuilding may move.

`PAIRCREDIT_GOLDEN=write pytest tests/golden/test_learners.py` writes them anew, which is right only when a change of
the numbers is wanted. In float64, sums over every array of the learner; two programs that do the same operations in
another order agree to 1e-12 or so.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.envs import make_environment
from paircredit.envs.bsuite.catch import CatchConfig
from paircredit.envs.protocol import InSegments
from paircredit.methods import make_method
from paircredit.settings import replace_dotted
from paircredit.training import Plan, train
from tests.training.theatre import Theatre

KEPT = Path(__file__).with_name("learners.json")
TINY = {"network.trunk": (6, 5), "network.pair_width": 8, "network.precision": "float32"}
PICTURES = TINY | {"network.filters": (2, 2), "network.picture_width": 6}
OWN = {
    "tvt": {"memory.width": 4, "memory.encoder": 6, "memory.controller": 4, "memory.hidden": 6, "memory.top_reads": 4},
    "a2c-rr": {
        "prediction.width": 6,
        "prediction.cells": 4,
        "prediction.batches": 2,
        "prediction.batch_size": 3,
        "prediction.capacity": 16,
        "prediction.every": 2,
        "prediction.epochs": 2,
        "prediction.warm_up": 2,
        "prediction.steps": 8,
        "prediction.chunk": None,
    },
    "rgm": {"transformer.width": 8, "transformer.blocks": 1, "transformer.heads": 2},
    "synthetic-returns": {"head_width": 4},
}
EVERY = ("a2c", "a2c-rr", "h-pwr", "meta-lambda", "meta-pwr", "meta-pwtd", "rgm", "synthetic-returns", "tvt")
NOT_BY_HAND = tuple(name for name in EVERY if name != "h-pwr")  # nobody wrote weights for catch
LEARNED = ("meta-lambda", "meta-pwr", "meta-pwtd", "rgm")
STREAMING = ("a2c", "a2c-rr", "meta-lambda", "meta-pwtd")
SHORT = {"key_steps": 3, "apple_steps": 4, "door_steps": 3, "fewest_apples": 19}


KINDS = {
    "tables": ("dag", "default", lambda: make_environment("dag", depth=4), {}, EVERY, "online"),
    "tables-reset": ("dag", "default", lambda: make_environment("dag", depth=4), {}, LEARNED, "reset"),
    "pictures": ("key-to-door", "small", lambda: make_environment("key-to-door", **SHORT), PICTURES, EVERY, "online"),
    "vectors": ("bsuite/catch", "default", lambda: CatchConfig().build(), TINY, NOT_BY_HAND, "online"),
    "segments": (
        "minatar/breakout",
        "small",
        lambda: make_environment("minatar/breakout", steps=6),
        PICTURES | {"inner.episodes": 4},
        STREAMING,
        "online",
    ),
    "hosted": (
        "bsuite/catch",
        "default",
        lambda: Theatre(InSegments(CatchConfig().build(), 6)),
        TINY | {"inner.episodes": 4},
        STREAMING,
        "online",
    ),
}
SINGLE = ("hosted",)
"""In float32: groups of members run in threads of their own, which are not told of `enable_x64`."""
CASES = [(kind, method) for kind, (*_, methods, _) in KINDS.items() for method in methods]
QUICK, EVERY_DAY = "tables", ("tables-reset",)
"""The kind of which most methods run every day, and one of which one does; the rest is nightly."""
ALWAYS, SLOW = "meta-pwtd", ("tvt", "rgm", "a2c-rr", "synthetic-returns", "meta-lambda")


def settings_of(method, kind_settings):
    """Those of the kind that the method has, and its own."""
    without_network = {k: v for k, v in kind_settings.items() if k != "network.pair_width" or method.startswith("meta")}
    return without_network | OWN.get(method, {})


def sums_of(learner) -> dict[str, list[float]]:
    """By key path: the sum of an array's absolute values, and a sum in which every entry counts differently."""
    found = {}
    for path, leaf in jax.tree_util.tree_flatten_with_path(learner)[0]:
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            leaf = jax.random.key_data(leaf)
        x = np.asarray(leaf, dtype=np.float64).reshape(-1)
        name = jax.tree_util.keystr(path).replace(".own.", ".")
        found[name] = [float(f"{s:.15g}") for s in (np.abs(x).sum(), x @ np.sin(1.0 + np.arange(x.size)))]
    return found


def learned(kind: str, name: str) -> dict:
    """Two seeds of a method after ten updates."""
    place, preset, make, settings, _, protocol = KINDS[kind]
    with jax.enable_x64(kind not in SINGLE):
        env = make()
        method = replace_dotted(make_method(name, preset, place), settings_of(name, settings), name)
        curves = {}

        def see(chunk):
            curves.update({key: float(np.asarray(x, dtype=np.float64).sum()) for key, x in chunk.summaries.items()})

        updates = 10 if protocol == "online" else 3
        state = train([method] * 2, [env] * 2, [0, 1], Plan(protocol, updates, inner_updates=3), updates, on_chunk=see)
        return {"summaries": curves, "learner": sums_of(state.learner)}


@pytest.fixture(scope="module")
def kept():
    return json.loads(KEPT.read_text()) if KEPT.exists() else {}


def case(kind: str, name: str) -> Any:
    marks = (
        () if (kind == QUICK and name not in SLOW) or (kind in EVERY_DAY and name == ALWAYS) else pytest.mark.nightly
    )
    return pytest.param(kind, name, marks=marks, id=f"{kind}-{name}")


@pytest.mark.parametrize(("kind", "name"), [case(*each) for each in CASES])
def test_learners_are_what_they_were(kind, name, kept):
    key, now = f"{kind}/{name}", learned(kind, name)
    if os.environ.get("PAIRCREDIT_GOLDEN") == "write":
        kept[key] = now
        KEPT.write_text(json.dumps(kept, indent=None, sort_keys=True, separators=(",", ":")) + "\n")
        return
    before = kept[key]
    assert now["summaries"].keys() == before["summaries"].keys()
    assert now["learner"].keys() == before["learner"].keys()
    close = {"rtol": 1e-4, "atol": 1e-5} if kind in SINGLE else {"rtol": 1e-11, "atol": 1e-12}
    for what in ("summaries", "learner"):
        for path, value in before[what].items():
            np.testing.assert_allclose(now[what][path], value, **close, err_msg=f"{key} {path}")
