"""How many steps a second do the bsuite domains make? Ours, the real package's and gymnax's, side by side in one run.

    python -m tools.benchmarks.bsuite_envs [--environments 1024] [--devices 2] [--seconds 1] [--repeats 5] [--json FILE]

Environments only: no network; random actions, and keys of generators, are made beforehand. Ours are whole episodes,
each begun with `reset` and random numbers of its own, which count; every observation and reward is summed up, so that
none can be optimised away. Steps after the end of an episode do not count, so that cartpole, where random play would
soon be at the end, is balanced by a rule. The environments are spread over `--devices` parts of the processor. The real
package is played in a plain Python loop on one core; its rate does not depend on how many environments there are.
gymnax, where it is installed, steps as many environments over the same devices, and resets itself.

All three are timed in turn, `--repeats` times; the best of each counts, because on a shared machine all others measure
the neighbours.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

DOMAINS = (  # the variant (of the umbrella the largest, which nothing pads), and gymnax's name where it has one
    ("catch", "catch/0", "Catch-bsuite"),
    ("catch_noise", "catch_noise/8", None),
    ("catch_scale", "catch_scale/12", None),
    ("umbrella_length", "umbrella_length/22", "UmbrellaChain-bsuite"),
    ("umbrella_distract", "umbrella_distract/22", None),
    ("cartpole", "cartpole/0", None),
    ("discounting_chain", "discounting_chain/0", "DiscountingChain-bsuite"),
)

Timed = Callable[[], tuple[int, float]]
"""Steps made, and the seconds they took."""

BALANCE = (0.1, 0.3, 1.0, 0.0, 0.3, 0.0)
"""A pole that is pushed by the sign of this sum of what is seen stands to the end of the episode."""


def spread(play: Callable, count: int, actions: int, steps: int) -> Timed:
    """Call a compiled program over and over, its environments spread over all devices."""
    import jax
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    mesh, parts = Mesh(jax.devices(), ("environments",)), PartitionSpec(None, "environments")
    program = jax.jit(jax.shard_map(play, mesh=mesh, in_specs=parts, out_specs=parts, check_vma=False))
    keys = jax.random.split(jax.random.key(0), (steps, count))
    chosen = jax.random.randint(jax.random.key(1), (steps, count), 0, actions, dtype="int32")
    keys, chosen = jax.device_put((keys, chosen), NamedSharding(mesh, parts))
    lived = int(program(keys, chosen)[1].sum())  # of the first call, which also compiles; all calls are alike

    def timed() -> tuple[int, float]:
        began, made = time.perf_counter(), 0
        while time.perf_counter() - began < OPTIONS.seconds:
            jax.block_until_ready(program(keys, chosen))
            made += lived
        return made, time.perf_counter() - began

    return timed


def ours(bsuite_id: str) -> Timed:
    """A few whole episodes a call."""
    import jax
    import jax.numpy as jnp

    from paircredit.envs.bsuite.sweep import bsuite_config

    env: Any = bsuite_config(bsuite_id).build()
    horizon = env.spec.horizon
    episodes = -(-OPTIONS.steps // horizon)

    def play(keys: jax.Array, actions: jax.Array) -> tuple[jax.Array, jax.Array]:
        def episode(total: jax.Array, inputs: tuple) -> tuple[jax.Array, None]:
            keys, actions = inputs
            state, first = jax.vmap(env.reset)(keys)

            def step(before: tuple, action: jax.Array) -> tuple[tuple, jax.Array]:
                state, observation, running, total = before
                if bsuite_id.startswith("cartpole"):
                    action = 2 * (observation @ jnp.asarray(BALANCE) > 0)
                state, now = jax.vmap(lambda s, a: env.step(keys[0], s, a))(state, action)
                total = total + now.observation.sum(axis=-1) + now.reward
                return (state, now.observation, running & ~now.terminated, total), running.sum()

            start = (state, first.observation, jnp.ones(len(keys), dtype=bool), total)
            (*_, total), steps = jax.lax.scan(step, start, actions)
            return total, steps.sum()

        start = jnp.zeros_like(actions[0], dtype=float)
        inputs = (keys[::horizon], actions.reshape(episodes, horizon, -1))
        total, steps = jax.lax.scan(episode, start, inputs)
        return total[None], steps.sum()[None, None]

    return spread(play, OPTIONS.environments, env.spec.num_actions, episodes * horizon)


def gymnax(name: str, bsuite_id: str) -> Timed:
    """As many steps a call; it resets itself on the way."""
    import gymnax
    import jax
    import jax.numpy as jnp

    from paircredit.envs.bsuite.sweep import bsuite_config

    settings: Any = bsuite_config(bsuite_id)
    env, params = gymnax.make(name, **({"n_distractor": settings.distractors} if "Umbrella" in name else {}))
    if "Umbrella" in name:
        params = params.replace(chain_length=settings.length)

    def play(keys: jax.Array, actions: jax.Array) -> tuple[jax.Array, jax.Array]:
        first, state = jax.vmap(lambda key: env.reset(key, params))(keys[0])

        def step(before: tuple, inputs: tuple) -> tuple[tuple, None]:
            state, _, total = before
            stepped = jax.vmap(lambda key, s, a: env.step(key, s, a, params))(inputs[0], state, inputs[1])
            observation, state, reward, terminated, _, _ = stepped
            seen = observation.reshape(len(reward), -1).sum(axis=-1)
            return (state, observation, total + seen + reward + terminated), None

        start = jnp.zeros_like(actions[0], dtype=float)
        (*_, total), _ = jax.lax.scan(step, (state, first, start), (keys, actions))
        return total[None], jnp.full((1, 1), actions.size)

    return spread(play, OPTIONS.environments, env.num_actions, OPTIONS.steps)


def real(bsuite_id: str) -> Timed:
    """The package itself, episode after episode."""
    import numpy as np

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import bsuite
    out, sys.stdout = sys.stdout, open(os.devnull, "w")  # it announces what it loads  # noqa: SIM115
    env = bsuite.load_from_id(bsuite_id)
    sys.stdout = out
    actions = np.random.default_rng(0).integers(env.action_spec().num_values, size=20_000).tolist()

    def timed() -> tuple[int, float]:
        began, steps = time.perf_counter(), 0
        while time.perf_counter() - began < OPTIONS.seconds:
            now = env.reset()
            for action in actions:
                now = env.step(action) if not now.last() else env.reset()
                steps += not now.first()
        return steps, time.perf_counter() - began

    return timed


def best_rates(timers: dict[str, Timed]) -> dict[str, float]:
    """Steps a second of each; they take turns."""
    rates = dict.fromkeys(timers, 0.0)
    for _ in range(OPTIONS.repeats):
        for name, timed in timers.items():
            steps, seconds = timed()
            rates[name] = max(rates[name], steps / seconds)
    return rates


def main() -> None:
    """Time all domains and print the table."""
    os.environ["XLA_FLAGS"] = (
        os.environ.get("XLA_FLAGS", "") + f" --xla_force_host_platform_device_count={OPTIONS.devices}"
    )
    installed = importlib.util.find_spec("gymnax") is not None
    print(f"Million steps a second, {OPTIONS.environments} environments, load {os.getloadavg()[0]:.1f}")
    print(f"{'domain':18s} {'ours':>8s} {'bsuite':>8s} {'gymnax':>8s}  ours/bsuite  ours/gymnax")
    rows = []
    for domain, bsuite_id, peer in DOMAINS:
        timers = {"ours": ours(bsuite_id), "bsuite": real(bsuite_id)}
        if peer and installed:
            timers["gymnax"] = gymnax(peer, bsuite_id)
        rates = best_rates(timers)
        row: dict[str, Any] = {"domain": domain, "bsuite_id": bsuite_id, "steps_per_second": rates}
        row["times_bsuite"] = rates["ours"] / rates["bsuite"]
        row["times_gymnax"] = rates["ours"] / rates["gymnax"] if "gymnax" in rates else None
        rows.append(row)
        shown = [f"{rates[name] / 1e6:8.2f}" if name in rates else " " * 8 for name in ("ours", "bsuite", "gymnax")]
        than = f"{row['times_gymnax']:11.1f}" if row["times_gymnax"] else ""
        print(f"{domain:18s} {' '.join(shown)}  {row['times_bsuite']:11.0f}  {than}", flush=True)
    if OPTIONS.json:
        from paircredit.runs.manifest import provenance

        versions = {name: importlib.metadata.version(name) for name in ("bsuite", *(("gymnax",) if installed else ()))}
        numbers = {
            "provenance": provenance(),
            "peers": versions,
            "options": {name: value for name, value in vars(OPTIONS).items() if name != "json"},
            "load": os.getloadavg(),
            "rows": rows,
        }
        OPTIONS.json.write_text(json.dumps(numbers, indent=1) + "\n")


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--environments", type=int, default=1024)
    parser.add_argument("--devices", type=int, default=2, help="parts of the processor that work at the same time")
    parser.add_argument("--steps", type=int, default=1000, help="steps of each environment in one call, at least")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement, at least")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = parsed()
    main()
