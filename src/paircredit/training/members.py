"""The member axis: many training runs as one array program, spread over several devices.

Members do not talk to each other, so every device gets an equal share of them and runs the very program that it would
run for these members alone. To the outside the shares are one array with a member axis, laid over a mesh. A program
partitioned by the compiler would be optimised along another path, which changes last digits, and an adaptive optimiser
makes 1e-4 of a last digit. With tables numbers do not depend on the number of devices at all; with networks they do in
last digits, because products over more members may be summed otherwise.

Where they are too many for the memory of a device, a sentence says which numbers to lower.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from jaxtyping import Array, Key

from paircredit.envs.protocol import Environment, Pixels, Vector
from paircredit.errors import NotEnoughMemoryError, PaircreditError
from paircredit.training.loop import LoopState, Plan, Summary, run_chunk, start_members
from paircredit.types import PyTree, is_key

SEEDS = range(2**32)
"""Random generators look at 32 bits of a seed and no more: larger ones and negative ones would repeat these."""
_SIGNS = ("RESOURCE_EXHAUSTED", "Out of memory")
"""What XLA calls it; within a program on a CPU it is an internal error."""
_FEW = 16
"""Members whose parameters are not counted: nobody has such large networks here."""


def stack_members(members: Sequence[Any]) -> Any:
    """Stack methods or environments along a new leading axis; they may differ in nothing that shapes the program."""
    if not members:
        raise PaircreditError("There are no members to train.")
    first = members[0]
    for member in members[1:]:
        if _structure(member) != _structure(first):
            raise PaircreditError(
                "Members of one program must agree in everything that is not a number to be traced, shapes included; "
                f"{' '.join(repr(first).split())} and {' '.join(repr(member).split())} do not."
            )
    return jax.tree.map(_stack, *members)


def refuse_seeds(seeds: Sequence[int]) -> None:
    """Refuse seeds that generators could not tell apart from others."""
    for seed in seeds:
        if seed not in SEEDS:
            size = "small" if seed < 0 else "large"
            raise PaircreditError(f"The seed {seed} is too {size}; take one between {SEEDS[0]} and {SEEDS[-1]}.")


def member_keys(seeds: Sequence[int]) -> Key[Array, " M"]:
    """One generator per seed; a member's draws do not depend on who trains beside it."""
    refuse_seeds(seeds)
    return jax.vmap(jax.random.key)(np.asarray(seeds, dtype=np.uint32))


def _stack(*leaves: Any) -> Array:
    """On the host, which saves compiling a program for every shape; random keys cannot leave the device."""
    if is_key(leaves[0]):
        return jnp.stack(leaves)
    return jnp.asarray(np.stack([np.asarray(leaf) for leaf in leaves]))


def _structure(member: Any) -> tuple[Any, list[tuple[int, ...]]]:
    return jax.tree.structure(member), [jnp.shape(leaf) for leaf in jax.tree.leaves(member)]


class Placement(NamedTuple):
    """How a tree whose leaves have a leading member axis is put to its place, and `loop`'s programs for such trees."""

    put: Callable[[PyTree], PyTree]
    start_members: Callable[[PyTree, PyTree, Plan, Key[Array, " M"], PyTree], LoopState]
    run_chunk: Callable[[PyTree, PyTree, Plan, LoopState], tuple[LoopState, Summary]]


def place_members(members: int) -> Placement:
    """The members in equal shares on as many of this process's devices as possible."""
    devices = shares(members, jax.local_device_count())
    if devices == 1:
        return Placement(lambda tree: tree, start_members, run_chunk)
    mesh = jax.make_mesh((devices,), ("members",), axis_types=(AxisType.Auto,), devices=jax.local_devices()[:devices])
    sharding = NamedSharding(mesh, PartitionSpec("members"))
    return Placement(
        lambda tree: jax.device_put(tree, sharding),
        lambda methods, envs, plan, keys, weights: _on_each(
            lambda m, e, k, w: start_members(m, e, plan, k, w), sharding, methods, envs, keys, weights
        ),
        lambda methods, envs, plan, state: _on_each(
            lambda m, e, s: run_chunk(m, e, plan, s), sharding, methods, envs, state
        ),
    )


def shares(members: int, devices: int) -> int:
    """The largest number of devices, up to those that there are, that divides the members."""
    return max(count for count in range(1, max(devices, 1) + 1) if members % count == 0)


def _on_each(program: Callable[..., PyTree], sharding: NamedSharding, *arguments: PyTree) -> Any:
    """Run a program on each device with its share of the arguments; the results lie as the arguments do."""
    first, *rest = _split(arguments, sharding)
    # One device goes ahead and traces; the others then compile side by side. Execution does not wait for anybody.
    results = [program(*first)]
    with ThreadPoolExecutor(len(rest)) as pool:
        results += pool.map(lambda share: program(*share), rest)

    def whole(*parts: Array) -> Array:
        shape = (len(parts) * parts[0].shape[0], *parts[0].shape[1:])
        return jax.make_array_from_single_device_arrays(shape, sharding, parts)

    return jax.tree.map(whole, *results)


def _split(tree: PyTree, sharding: NamedSharding) -> list[PyTree]:
    leaves, structure = jax.tree.flatten(tree)
    shards = [sorted(leaf.addressable_shards, key=lambda shard: shard.index[0].start or 0) for leaf in leaves]
    return [jax.tree.unflatten(structure, [own[i].data for own in shards]) for i in range(sharding.num_devices)]


@contextlib.contextmanager
def enough_memory(members: int, episodes: int, horizon: int) -> Iterator[None]:
    """Around a program of M members, B episodes and T steps: where memory runs out, a sentence says what to lower."""
    try:
        yield
    except (MemoryError, jax.errors.JaxRuntimeError) as error:
        if not isinstance(error, MemoryError) and not any(sign in str(error) for sign in _SIGNS):
            raise
        raise _too_much(members, episodes, horizon) from error


def refuse_too_large(methods: Sequence[Any], env: Environment) -> None:
    """Refuse observations and learners that alone are larger than the device's memory, before anything is compiled."""
    room, method, seen, horizon = _device_bytes(), methods[0], env.spec.observation, env.spec.horizon
    if room is None:
        return
    members = len(methods) // shares(len(methods), jax.local_device_count())
    if isinstance(seen, Pixels):
        each = seen.height * seen.width * seen.channels
    else:
        each = 4 * (seen.size if isinstance(seen, Vector) else 1)
    needed = members * method.episodes * horizon * each
    if needed <= room and (method.setting_of_memory or len(methods) > _FEW):
        learner = jax.eval_shape(lambda key: method.init(key, env), jax.random.key(0))
        needed = members * sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(learner))
    if needed > room:
        gib = f" (they take {needed / 2**30:,.1f} GiB, and it has {room / 2**30:.1f} GiB)"
        raise _too_much(members, method.episodes, horizon, gib, method.setting_of_memory)


def _too_much(members: int, episodes: int, horizon: int, how_much: str = "", setting: str = "") -> NotEnoughMemoryError:
    stored = f", what they store (--method.{setting})" if setting else ""
    return NotEnoughMemoryError(
        f"M = {members:,} members with B = {episodes:,} episodes of T = {horizon:,} steps are too much for the memory "
        f"of the device{how_much}; lower M (fewer seeds or variants in one run){stored}, B (--method.inner.episodes) "
        "or T (a shorter environment)."
    )


def _device_bytes() -> int | None:
    """Those of the first device, where it tells; a CPU has the memory of its machine."""
    device = jax.local_devices()[0]
    if device.platform == "cpu" and hasattr(os, "sysconf"):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return (device.memory_stats() or {}).get("bytes_limit")
