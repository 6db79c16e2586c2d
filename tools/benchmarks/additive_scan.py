"""The recurrence of the return predictor, forward and backward: our derivative against JAX's own, by steps per loop.

    python -m tools.benchmarks.additive_scan [--members 10] [--episodes 8] [--steps 120] [--cells 64]
        [--unroll 1 2 4 8 16] [--json FILE]

One call is a batch as in training: the last memory of every episode is differentiated in everything. On a GPU the
kernel is timed too, and its derivatives are compared with those of the loop.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from tools.bench import compile_program, measure

from paircredit.networks import additive_cell as module
from paircredit.runs.manifest import provenance


def plain(candidates: jax.Array, weight: jax.Array, bias: jax.Array, start: jax.Array, unroll: int) -> jax.Array:
    """As one would write it."""

    def step(memory: jax.Array, candidate: jax.Array) -> tuple[jax.Array, jax.Array]:
        memory = memory + jax.nn.sigmoid(memory @ weight + bias) * candidate
        return memory, memory

    return jax.lax.scan(step, start, candidates, unroll=unroll)[1]


def gradient(scan: Callable) -> Callable:
    """Of the sum of last memories, over members and episodes."""

    def total(*arguments: jax.Array) -> jax.Array:
        over_episodes = jax.vmap(scan, in_axes=(0, None, None, None))
        return jnp.sum(jax.vmap(over_episodes)(*arguments)[:, :, -1])

    return jax.grad(total, argnums=(0, 1, 2))


def main() -> None:
    """Time both and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--members", type=int, default=10)
    parser.add_argument("--episodes", type=int, default=8)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--cells", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--unroll", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    m, b, t, c = options.members, options.episodes, options.steps, options.cells
    keys = jax.random.split(jax.random.key(0), 2)
    arguments = (
        jnp.tanh(jax.random.normal(keys[0], (m, b, t, c))),
        0.1 * jax.random.normal(keys[1], (m, c, c)),
        jnp.full((m, c), -3.0),
        jnp.zeros((m, c)),
    )
    sizes = {name: getattr(options, name) for name in ("members", "episodes", "steps", "cells", "repeats")}
    numbers: dict[str, object] = {"provenance": provenance(), **sizes}
    rows: list[dict[str, float]] = []
    if jax.default_backend() == "gpu":
        ways = [gradient(lambda *a, n=name: module.additive_scan(*a, backend=n)) for name in ("kernel", "loop")]
        kernel = measure(compile_program(ways[0], arguments), options.repeats)
        with jax.default_matmul_precision("highest"):
            found, expected = (jax.tree.map(np.asarray, jax.jit(way)(*arguments)) for way in ways)
        ratios = [np.linalg.norm(a - b) / np.linalg.norm(b) for a, b in zip(found, expected, strict=True)]
        numbers |= {"kernel_seconds": kernel.seconds, "difference": float(max(ratios))}
        print(f"kernel  {1e3 * kernel.seconds:7.3f} ms, largest relative difference to the loop {max(ratios):.1e}")
    print("unroll  ours ms  automatic ms")
    for unroll in options.unroll:
        module.unroll = lambda unroll=unroll: unroll
        ours = measure(
            compile_program(gradient(lambda *a: module.additive_scan(*a, backend="loop")), arguments), options.repeats
        )
        automatic = measure(compile_program(gradient(lambda *a, u=unroll: plain(*a, u)), arguments), options.repeats)
        rows.append({"unroll": unroll, "seconds": ours.seconds, "automatic_seconds": automatic.seconds})
        print(f"{unroll:6d}  {1e3 * ours.seconds:7.3f}  {1e3 * automatic.seconds:12.3f}", flush=True)
    if options.json:
        options.json.write_text(json.dumps({**numbers, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
