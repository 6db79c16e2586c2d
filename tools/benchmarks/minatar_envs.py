"""How many steps a second do MinAtar's games make? Ours, and the real package's in a Python loop on one core.

    python -m tools.benchmarks.minatar_envs [--environments 1024] [--steps 200] [--repeats 3]
        [--games GAME ...] [--json FILE]

Environments only: no network. Whoever is at the end of an episode starts again in the next step, as segments
do; these steps do not count. Random numbers count, those of actions included. Every picture and reward is summed up, so
that none can be optimised away. The best of the repeats counts: on a shared machine all others measure the neighbours.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import time
import warnings
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from paircredit.envs import make_environment
from paircredit.envs.atari import GAMES
from paircredit.runs.manifest import provenance


def ours(game: str, count: int, steps: int, repeats: int) -> float:
    """Steps a second of this many games side by side."""
    env = make_environment(f"minatar/{game}")

    def step(before: tuple, given: tuple) -> tuple[tuple, Any]:
        (state, over), (keys, actions) = before, given
        stepped, fresh = jax.vmap(env.step)(keys, state, actions), jax.vmap(env.reset)(keys)
        state, now = jax.tree.map(lambda a, b: jnp.where(over.reshape(-1, *[1] * (a.ndim - 1)), a, b), fresh, stepped)
        ended = now.terminated & ~over
        seen = jnp.sum(now.observation.pixels, dtype=jnp.int32) + jnp.sum(now.reward).astype(jnp.int32)
        return (state, ended), (seen, jnp.sum(~over))

    @jax.jit
    def play(key: Any) -> Any:
        first, noise, choice = jax.random.split(key, 3)
        state, _ = jax.vmap(env.reset)(jax.random.split(first, count))
        keys = jax.random.split(noise, (steps, count))
        actions = jax.random.randint(choice, (steps, count), 0, env.spec.num_actions)
        _, (seen, lived) = jax.lax.scan(step, (state, jnp.zeros(count, dtype=bool)), (keys, actions))
        return jnp.sum(seen), jnp.sum(lived)

    jax.block_until_ready(play(jax.random.key(0)))
    best = 0.0
    for number in range(repeats):
        began = time.perf_counter()
        _, lived = jax.device_get(play(jax.random.key(number)))
        best = max(best, float(lived) / (time.perf_counter() - began))
    return best


def original(game: str, seconds: float = 1.0) -> float:
    """Steps a second of the real package."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from minatar import Environment
    env, chance, made = Environment(game), np.random.default_rng(0), 0
    actions = env.minimal_action_set()
    choices = chance.integers(len(actions), size=1_000_000)
    began = time.perf_counter()
    while time.perf_counter() - began < seconds:
        for _ in range(100):
            _, over = env.act(actions[choices[made % len(choices)]])
            env.state()
            made += 1
            if over:
                env.reset()
    return made / (time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--environments", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--games", nargs="+", default=list(GAMES))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = []
    for game in options.games:
        mine = ours(game, options.environments, options.steps, options.repeats)
        real = max(original(game) for _ in range(options.repeats))
        rows.append({"game": game, "ours": round(mine), "original": round(real)})
        print(f"{game:15} ours {mine / 1e6:7.3f}  original {real / 1e6:7.3f} million steps a second")
    if options.json:
        numbers = {
            "provenance": provenance(),
            "peers": {"MinAtar": importlib.metadata.version("MinAtar")},
            "options": {name: value for name, value in vars(options).items() if name != "json"},
            "load": os.getloadavg(),
            "rows": rows,
        }
        options.json.write_text(json.dumps(numbers, indent=1) + "\n")


if __name__ == "__main__":
    main()
