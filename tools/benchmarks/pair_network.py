"""The pair network's back ends side by side: milliseconds, memory by the compiled program's own figures, agreement.

    python -m tools.benchmarks.pair_network [--members 10] [--episodes 16] [--steps 120] [--width 256] [--backends ...]
        [--json FILE]

Gradients of the first member are compared with those of the dense back end in float64, episode by episode; float32
products are taken at their full precision for this. An episode has two million units at these sizes, and now and then
one of them lies so close to 0 that rounding decides on which side of the ReLU's kink it is: then its whole gradient
counts as a difference. So there are two numbers, the median over episodes and the largest.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from tools.bench import compile_program, measure

from paircredit.runs.manifest import provenance
from paircredit.weights.pair_network import pair_backend
from paircredit.weights.pairs import PairParameters, dense_pair_logits


def random_parameters(key: jax.Array, steps: int, width: int) -> PairParameters:
    """Embeddings like those of a network in training, for one episode."""
    keys = jax.random.split(key, 6)
    rows, columns, lags = (jax.random.normal(k, (steps, width)) for k in keys[:3])
    scale, shift, out = (jax.random.normal(k, (width,)) for k in keys[3:])
    return PairParameters(1 + jax.nn.relu(rows), 1 + jax.nn.relu(columns), 1 + lags, 1 + 0.1 * scale, 0.1 * shift, out)


def exact_gradient(parameters: PairParameters, cotangent: jax.Array, valid: jax.Array) -> PairParameters:
    """The dense back end in float64."""
    given = jax.tree.map(np.asarray, (parameters, cotangent))
    with jax.enable_x64(True):
        exact, received = jax.tree.map(lambda x: jnp.asarray(x, dtype=jnp.float64), given)

        def logits(p: PairParameters) -> jax.Array:
            return jax.vmap(jax.vmap(lambda q: dense_pair_logits(q, valid)))(p)

        return jax.tree.map(np.asarray, jax.jit(lambda p, z: jax.vjp(logits, p)[1](z)[0])(exact, received))


def differences(expected: PairParameters, found: PairParameters) -> np.ndarray:
    """For every episode of the first member the largest relative difference among the gradients of its arrays."""

    def ratios(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        flat = [x[0].reshape(x.shape[1], -1) for x in (a, b)]
        return np.linalg.norm(flat[0] - flat[1], axis=1) / np.linalg.norm(flat[0], axis=1)

    return np.max(jax.tree.leaves(jax.tree.map(ratios, expected, found)), axis=0)


def main() -> None:
    """Time every back end and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--members", type=int, default=10)
    parser.add_argument("--episodes", type=int, default=16)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--backends", nargs="+", default=["dense", "tiled", "kernel"])
    parser.add_argument("--no-reference", action="store_true", help="do not compare gradients (dense may not fit)")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    shape = (options.members, options.episodes)
    make = jax.jit(jax.vmap(jax.vmap(lambda key: random_parameters(key, options.steps, options.width))))
    parameters = make(jax.random.split(jax.random.key(0), shape))
    cotangent = jax.random.normal(jax.random.key(1), (*shape, options.steps, options.steps))
    valid = jnp.ones((options.steps,), dtype=bool)
    few = jax.tree.map(lambda x: x[:1], (parameters, cotangent))
    rows, reference = [], None if options.no_reference else exact_gradient(*few, valid)
    print("back end  forward ms  with backward ms  temporary GiB  relative difference of gradients: median, largest")
    for name in options.backends:
        function = pair_backend(name, jnp.dtype(jnp.float32), options.steps)

        def logits(p: PairParameters, function=function) -> jax.Array:
            return jax.vmap(jax.vmap(lambda q: function(q, valid)))(p)

        def gradient(p: PairParameters, received: jax.Array, logits=logits) -> PairParameters:
            return jax.vjp(logits, p)[1](received)[0]

        forward = measure(compile_program(logits, (parameters,)), options.repeats)
        both = measure(compile_program(gradient, (parameters, cotangent)), options.repeats)
        difference = None
        if reference is not None:
            with jax.default_matmul_precision("highest"):
                found = jax.tree.map(np.asarray, jax.jit(gradient)(*few))
            difference = differences(reference, found)
        row = {"backend": name, "forward_seconds": forward.seconds, "gradient_seconds": both.seconds}
        row |= {"temporary_bytes": both.temporary_bytes}
        if difference is not None:
            row |= {"median_difference": float(np.median(difference)), "largest_difference": float(difference.max())}
        rows.append(row)
        print(
            f"{name:8s} {1e3 * forward.seconds:11.2f} {1e3 * both.seconds:17.2f} {both.temporary_bytes / 2**30:14.3f}  "
            + ("–" if difference is None else f"{np.median(difference):.1e}  {difference.max():.1e}"),
            flush=True,
        )
    if options.json:
        sizes = {name: getattr(options, name) for name in ("members", "episodes", "steps", "width", "repeats")}
        options.json.write_text(json.dumps({"provenance": provenance(), **sizes, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
