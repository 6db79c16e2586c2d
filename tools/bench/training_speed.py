"""Training speed of methods: whole iterations, their parts, and how the cost grows.

The parts are compiled and timed one by one, each mapped over all members as in training. In training they are one
program, in which the compiler shares what they have in common, so that they add up to more than the whole.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from paircredit.envs.registry import environment_config, make_environment
from paircredit.errors import PaircreditError
from paircredit.methods import ActorCritic, Learner, Trained, make_method, replace_dotted
from paircredit.methods.a2c_rr import Redistribution
from paircredit.methods.agent import meta_learn
from paircredit.methods.presets import preset_environment
from paircredit.training.loop import Plan, chunk, start_members
from paircredit.training.members import enough_memory, member_keys, refuse_too_large, stack_members
from paircredit.training.rollout import collect
from paircredit.training.train import refuse_segments
from paircredit.types import Trajectory
from tools.bench.measure import Measurement, compile_all, compile_program, measure
from tools.bench.profile import Profile, Share, one_by_one, profile

_MOST_OPERATIONS = 40
"""That are kept of a profile, the longest."""


@dataclasses.dataclass(frozen=True)
class BenchSpec:
    """What is timed.

    Attributes:
        env: name of the environment.
        method: name of the method.
        preset: of the method.
        members: M.
        updates: iterations per timed call of the whole.
        repeats: timed calls.
        env_settings: settings of the environment.
        method_settings: settings of the method, dotted.
    """

    env: str = "key-to-door"
    method: str = "a2c"
    preset: str = "default"
    members: int = 10
    updates: int = 5
    repeats: int = 10
    env_settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    method_settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def bench(spec: BenchSpec, parts: bool = True, watched: bool = False) -> dict[str, Any]:
    """Time a method.

    Args:
        spec: what to time.
        parts: compile and time the parts one by one, too.
        watched: watch the whole with a profiler, too; its numbers are per update.

    Returns:
        Numbers for a table and for JSON: seconds per update, frames per second, compile seconds, memory, and the
        seconds of the parts.
    """
    method, env = refuse_what_cannot_be_timed(spec)
    with enough_memory(spec.members, method.episodes, env.spec.horizon):
        return _timed(spec, _made(spec, method, env), parts, watched)


def refuse_what_cannot_be_timed(spec: BenchSpec) -> tuple[Any, Any]:
    """The method and the environment, if they fit each other and the machine; nothing is computed.

    Raises:
        PaircreditError: they do not, or the spec makes no sense.
    """
    if spec.members < 1 or spec.updates < 1 or spec.repeats < 1:
        raise PaircreditError("Members, updates and repeats must be at least 1.")
    env: Any = make_environment(spec.env, **{**preset_environment(spec.preset, spec.env), **spec.env_settings})
    method: Any = replace_dotted(make_method(spec.method, spec.preset, spec.env), spec.method_settings, spec.method)
    refuse_segments([method], [env], "online")
    refuse_too_large([method] * spec.members, env)
    with enough_memory(spec.members, method.episodes, env.spec.horizon):
        jax.eval_shape(lambda key: method.init(key, env), jax.random.key(0))
    return method, env


def _timed(spec: BenchSpec, made: _Made, parts: bool, watched: bool) -> dict[str, Any]:
    program = compile_program(*made.whole)
    row = _row(spec, made, measure(program, spec.repeats))
    if watched:
        seen = compile_program(*made.whole, one_by_one()) if one_by_one() else program
        row["profile"] = _per_update(profile(seen.compiled, seen.arguments), spec.updates)
    if parts:
        programs = compile_all({name: (function, given) for name, function, given in _parts(*made[:4])})
        timed = {name: measure(program, spec.repeats) for name, program in programs.items()}
        row["parts"] = {name: m.seconds for name, m in timed.items()}
        row["parts_temporary_bytes"] = {name: m.temporary_bytes for name, m in timed.items()}
        row["seconds_update_alone"] = timed["update alone"].seconds
    return row


class _Made(NamedTuple):
    """Members and their state, ready to be trained; and the training of all, as a function and its arguments."""

    stacked: Any
    envs: Any
    state: Any
    method: Any
    env: Any
    whole: tuple[Callable, tuple[Any, ...]]


def _made(spec: BenchSpec, method: Any, env: Any) -> _Made:
    envs, stacked = stack_members([env] * spec.members), stack_members([method] * spec.members)
    plan = Plan(updates=spec.updates)
    state = start_members(stacked, envs, plan, member_keys(range(spec.members)))
    return _Made(stacked, envs, state, method, env, (lambda m, e, s: chunk(m, e, plan, s), (stacked, envs, state)))


def _row(spec: BenchSpec, made: _Made, whole: Measurement) -> dict[str, Any]:
    method, env = made.method, made.env
    seconds = whole.seconds / spec.updates
    frames = spec.members * method.episodes * env.spec.horizon
    return {
        "method": spec.method,
        "env": spec.env,
        "preset": spec.preset,
        "members": spec.members,
        "episodes": method.episodes,
        "horizon": env.spec.horizon,
        "pair_width": method.network.pair_width,
        "seconds_per_update": seconds,
        "fastest_seconds_per_update": whole.fastest / spec.updates,
        "frames_per_second": frames / seconds,
        "compile_seconds": whole.compile_seconds,
        "temporary_bytes": whole.temporary_bytes,
        "argument_bytes": whole.argument_bytes,
        "device": {"gpu": "cuda"}.get(jax.default_backend(), jax.default_backend()),
    }


def _per_update(found: Profile, updates: int) -> dict[str, Any]:
    def shares(all_of_them: Sequence[Share]) -> list[dict[str, Any]]:
        return [
            {**dataclasses.asdict(one), "seconds": one.seconds / updates, "launches": one.launches / updates}
            for one in all_of_them
        ]

    return {
        "wall_seconds": found.wall_seconds / updates,
        "busy_seconds": found.busy_seconds / updates,
        "parts": shares(found.parts),
        "operations": shares(found.operations[:_MOST_OPERATIONS]),
    }


def growth(spec: BenchSpec, axes: Mapping[str, Sequence[int]]) -> Iterator[dict[str, Any]]:
    """Time the whole with one size changed at a time; the sizes of an axis are compiled side by side.

    Everything is looked at before the first is timed.

    Args:
        spec: where to start from.
        axes: `members`, `episodes`, `apple_steps` or `pair_width`, and the values to try; that of a setting that the
            environment does not have is left out.

    Raises:
        PaircreditError: a size cannot be timed.
    """
    change: dict[str, Callable[[int], BenchSpec]] = {
        "members": lambda v: dataclasses.replace(spec, members=v),
        "episodes": lambda v: _with_method(spec, "inner.episodes", v),
        "pair_width": lambda v: _with_method(spec, "network.pair_width", v),
        "apple_steps": lambda v: dataclasses.replace(spec, env_settings={**spec.env_settings, "apple_steps": v}),
    }
    has_apples = hasattr(environment_config(spec.env), "apple_steps")
    tried = {
        axis: {value: change[axis](value) for value in values}
        for axis, values in axes.items()
        if has_apples or axis != "apple_steps"
    }
    fits = {axis: {v: refuse_what_cannot_be_timed(s) for v, s in specs.items()} for axis, specs in tried.items()}
    return _grown(spec.repeats, tried, fits)


def _grown(
    repeats: int, tried: Mapping[str, Mapping[int, BenchSpec]], fits: Mapping[str, Mapping[int, tuple[Any, Any]]]
) -> Iterator[dict[str, Any]]:
    known: dict[tuple[int, ...], dict[str, Any]] = {}  # the sizes to start from are on every axis
    for axis, specs in tried.items():
        values, fitting = list(specs), fits[axis]
        sizes = {value: _sizes(specs[value], *fitting[value]) for value in values}
        new = [value for value in values if sizes[value] not in known]
        method, env = max(fitting.values(), key=lambda both: both[0].episodes * both[1].spec.horizon)
        with enough_memory(max(changed.members for changed in specs.values()), method.episodes, env.spec.horizon):
            made = {value: _made(specs[value], *fitting[value]) for value in new}
            programs = compile_all({str(value): one.whole for value, one in made.items()})
            for value in values:
                if value in made:
                    timed = measure(programs[str(value)], repeats)
                    known[sizes[value]] = _row(specs[value], made[value], timed)
                yield {"axis": axis, "value": value, **known[sizes[value]]}


def _sizes(spec: BenchSpec, method: Any, env: Any) -> tuple[int, ...]:
    return spec.members, method.episodes, env.spec.horizon, method.network.pair_width


def _with_method(spec: BenchSpec, name: str, value: Any) -> BenchSpec:
    return dataclasses.replace(spec, method_settings={**spec.method_settings, name: value})


def _parts(stacked: Any, envs: Any, state: Any, method: Any) -> Iterator[tuple[str, Callable, tuple]]:
    keys = member_keys(range(100, 100 + len(jax.tree.leaves(envs)[0])))
    learner, trajectory = state.learner, state.trajectory
    yield "rollout", jax.vmap(collect), (stacked, learner, envs, state.actors, keys)

    apart = isinstance(method, ActorCritic) and not method.network.shared
    if apart:  # an agent with memory, or one network for policy and value, learns as a whole
        advantages = jnp.zeros_like(trajectory.rewards) + 0.1
        yield (
            "policy",
            jax.vmap(_improve_policy),
            (stacked, learner.policy, trajectory, advantages),
        )
    values = _values_of(learner) if isinstance(method, ActorCritic) else []
    if values:
        yield (
            "values",
            jax.vmap(lambda m, vs, t: [m.inner.improve_value(v, t, t.rewards) for v in vs]),
            (stacked, values, trajectory),
        )
    learn = jax.vmap(lambda m, s, t: m.learn(s, t))
    if not method.learns_weights:
        yield "update alone", learn, (stacked, learner, trajectory)
        return
    _, kept = jax.jit(learn)(stacked, learner, trajectory)
    cotangent = jnp.ones_like(trajectory.rewards)

    def weights_and_back(m: Any, weights: Any, data: Any, received: Any) -> Any:
        advantages, pull = jax.vjp(lambda w: m.problem().advantages(w, data, None), weights)
        return advantages, pull(received)

    yield "weights", jax.vmap(weights_and_back), (stacked, learner.weights.parameters, kept, cotangent)
    yield "meta", jax.vmap(meta_learn), (stacked, learner, kept, trajectory)

    def update(m: Any, s: Any, t: Any) -> Any:
        after, data = m.learn(s, t)
        return meta_learn(m, after, data, t)

    yield "update alone", jax.vmap(update), (stacked, learner, trajectory)


def peak_device_bytes() -> int | None:
    """The most memory that was ever in use on the device, where it tells."""
    statistics = jax.devices()[0].memory_stats() or {}
    return statistics.get("peak_bytes_in_use")


def _improve_policy(method: Any, policy: Trained, trajectory: Trajectory, advantages: jax.Array) -> Trained:
    gradients = jax.grad(method.inner.policy_loss)(policy.parameters, trajectory, advantages)
    return policy.step(method.inner.policy_optimiser, gradients)


def _values_of(learner: Learner) -> list[Trained]:
    own = [learner.own.redistributed_value] if isinstance(learner.own, Redistribution) else []
    return [value for value in (learner.value, learner.weighted_value, *own) if value is not None]
