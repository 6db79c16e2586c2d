"""From a training spec to a run folder; and who is told how far a run has come."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from paircredit.analysis.exact import expected_return, optimal_values
from paircredit.envs.hosted import HostedEnvironment
from paircredit.envs.protocol import Discrete, EnvSpec, Layered, Pixels, TabularEnvironment
from paircredit.envs.registry import environment_config
from paircredit.errors import PaircreditError
from paircredit.experiments.learners import first_parameters, has_tables, load_weights, may_be_kept, weight_tables
from paircredit.experiments.spec import Resolved, TrainingSpec, as_json, resolve, resolve_method
from paircredit.methods.rule import Method
from paircredit.networks.state_functions import PolicyTable, num_states
from paircredit.runs.checkpoint import SECONDS_BETWEEN, Schedule
from paircredit.runs.folder import RunWriter, rounded
from paircredit.runs.trees import tree_sum
from paircredit.settings import fields_of, values_of, with_values
from paircredit.training import Chunk, LoopState, Plan, train
from paircredit.training.members import enough_memory, refuse_seeds, refuse_too_large, stack_members
from paircredit.training.train import even_chunks, refuse_segments, states_like
from paircredit.weights import FixedTable, SigmoidTable, handcrafted_weights
from paircredit.weights.tables import MatrixWeights

LARGEST_CHUNK, LARGEST_CHUNK_OF_PICTURES = 250, 50
"""Updates between two looks at the host: metrics, progress, checkpoints."""
SNAPSHOTS = 10
METRIC_ROWS = 2_500
"""Rows per member that a metrics file is to hold, about; longer runs record means over several updates."""
NEW_GAMES = (
    "Emulators cannot be saved: learners go on from the checkpoint, but games begin anew, so this is not the very run "
    "that it would have been without the stop."
)
"""Of runs whose environments live on the host."""
LONG = 1e6
"""Numbers from here on are told by their digits and a power of ten."""
_DECADE = (10, 12, 14, 17, 20, 25, 30, 40, 50, 60, 70, 80, 90)
BEST = "best_"
"""Of summaries whose names begin so, a row over several updates has the largest and not the mean."""


class Progress(Protocol):
    """Told about long work while it goes on."""

    def begin(self, name: str, total: int, done: int = 0) -> None:
        """A run of `total` steps begins, or goes on after the first `done` of them."""
        return

    def advance(self, steps: int) -> None:
        """Some of its steps are done."""
        return

    def tell(self, numbers: str) -> None:
        """How the run is doing at the moment; where none has begun, the whole."""
        return

    def end(self, note: str) -> None:
        """The run is done; the note says what came out."""
        return

    def skip(self, name: str) -> None:
        """A run was finished before and is not made again."""
        return

    def made(self, note: str) -> None:
        """A run is done that another process has made."""
        return

    def say(self, sentence: str) -> None:
        """Something that a person should know."""
        return


class Silent(Progress):
    """Tells nobody: it does what the protocol's own methods do, which is nothing."""


def run_training(
    spec: TrainingSpec, folder: Path, progress: Progress, *, checkpoint_seconds: float = SECONDS_BETWEEN
) -> None:
    """Train what the spec says and write it down in a run folder; a run that was stopped goes on.

    The folder is that of the experiment, in which it finds earlier runs. Checkpoints are at least this many seconds
    apart; 0 is for one after every chunk.
    """
    method = resolve_method(spec.method, spec.preset, spec.env, spec.method_settings)
    members = _members(spec, folder)
    env = members[0].env
    methods, envs, seeds = [m.method for m in members], [m.env for m in members], [m.seed for m in members]
    # What cannot start is refused before a folder is made.
    refuse_seeds(seeds)
    refuse_too_large(methods, env)
    with enough_memory(len(members), method.episodes, env.spec.horizon):
        learner = jax.eval_shape(methods[0].init, jax.random.key(0), env)
    tables = isinstance(learner.policy.parameters, PolicyTable)
    plan = _plan(spec, env, tables)
    weights = _start_weights(members, method, spec)
    stride = -(-spec.updates // METRIC_ROWS)
    per_update = method.episodes * (1 if spec.protocol == "online" else spec.inner_updates + 1)
    stops = set(np.linspace(plan.updates, spec.updates, SNAPSHOTS).astype(int) // plan.updates)
    stops.add(-(-spec.updates // plan.updates))  # the end, also where a shorter chunk is the last
    schedule = Schedule(checkpoint_seconds)

    with RunWriter(
        folder / spec.name,
        "training",
        as_json(spec),
        go_on=True,
        inputs=tree_sum((stack_members(methods), stack_members(envs), plan.updates)),
        like=lambda: states_like(methods, envs, seeds, plan, weights),
        not_exact=NEW_GAMES if isinstance(env, HostedEnvironment) else "",
        settings={
            "env": _settings_of(environment_config(spec.env, **spec.env_settings)),
            "method": _settings_of(method),
        },
    ) as writer:
        resumed = writer.resumed
        go_on, kept = ((resumed.position.updates, resumed.state), resumed.kept) if resumed else (None, {})
        snapshots = dict(zip(kept["snapshot_updates"].tolist(), kept["snapshots"], strict=True)) if kept else {}
        for note in writer.notes:
            progress.say(note)
        progress.begin(spec.name, spec.updates, go_on[0] if go_on else 0)

        def record(chunk: Chunk) -> None:
            count = _length(chunk)
            done = chunk.first_update + count
            at_stop = spec.learn_weights and chunk.first_update // plan.updates + 1 in stops
            if at_stop and may_be_kept(methods, chunk.state, SNAPSHOTS):
                snapshots[done] = weight_tables(methods, chunk.state).astype(np.float16)
            writer.append(_rows(chunk, members, stride, per_update, env.spec))
            progress.advance(count)
            progress.tell(_numbers(chunk, env.spec))
            if done < spec.updates and schedule.due(chunk.state):
                with schedule.measured():
                    writer.save(done, chunk.state, _snapshot_arrays(snapshots))

        state = train(methods, envs, seeds, plan, spec.updates, weights=weights, on_chunk=record, go_on=go_on)
        writer.finish(
            _arrays(state, members, spec.learn_weights, tables) | _snapshot_arrays(snapshots),
            None if tables else first_parameters(state.learner),  # tables are among the arrays
        )
    progress.end(spec.name)


def _plan(spec: TrainingSpec, env: Any, tables: bool) -> Plan:
    exact = spec.protocol == "online" and isinstance(env, TabularEnvironment) and tables
    most = LARGEST_CHUNK_OF_PICTURES if isinstance(env.spec.observation, Pixels) else LARGEST_CHUNK
    return Plan(
        protocol=spec.protocol,
        updates=even_chunks(spec.updates, most),
        inner_updates=spec.inner_updates,
        learn_weights=spec.learn_weights,
        probe=exact_return if exact else None,
    )


def _settings_of(thing: Any) -> dict[str, Any]:
    """Names and values of a dataclass and of those within it, as JSON; what is no plain value is left out."""
    found: dict[str, Any] = {}
    for name, value in values_of(thing).items():
        if dataclasses.is_dataclass(value):
            found[name] = _settings_of(value)
        elif value is None or isinstance(value, bool | int | float | str | tuple):
            found[name] = value
    return found


class Member(NamedTuple):
    """One training of a program: with weights from elsewhere, if any; labels and seed tell it from the others."""

    seed: int
    env: Any
    method: Any
    table: np.ndarray | None
    labels: dict[str, Any]


def exact_return(method: Method, learner: Any, env: Any) -> dict[str, jax.Array]:
    """The exact expected return of the learner's policy; the loop records it beside the sampled one."""
    del method
    return {"expected_return": expected_return(env.model(), learner.policy.parameters.logits)}


def masked_optimal_values(env: Layered, mask: int) -> jax.Array:
    """The optimal value function, 0 in all layers of states up to `mask` (the paper's probe)."""
    return jnp.where(jnp.asarray(env.layers()) <= mask, 0.0, optimal_values(env.model()))


def _members(spec: TrainingSpec, folder: Path) -> list[Member]:
    members = []
    for variant in resolve(spec):
        refuse_segments([variant.method], [variant.env], spec.protocol)
        members += _members_of_variant(spec, variant, folder)
    if not members:
        raise PaircreditError(f"The run {spec.name} has no seeds, so there is nobody to train.")
    return members


def _members_of_variant(spec: TrainingSpec, variant: Resolved, folder: Path) -> list[Member]:
    method, env, labels, seeds = variant.method, variant.env, variant.labels, variant.seeds
    takes_table = "table" in fields_of(method)
    if spec.value_masks:
        if "fixed_value" not in fields_of(method):
            raise PaircreditError(
                f"{spec.method} cannot be given a fixed value function, so value_masks must be empty."
            )
        masked = {mask: with_values(method, fixed_value=masked_optimal_values(env, mask)) for mask in spec.value_masks}
        return [
            Member(seed, env, own, None, {**labels, "mask": mask}) for mask, own in masked.items() for seed in seeds
        ]
    if spec.weights_from is None:
        if takes_table:  # as data, so that handcrafted and learned tables share a compiled program
            method = with_values(method, table=handcrafted_weights(env).matrix())
        return [Member(seed, env, method, None, labels) for seed in seeds]
    if not takes_table and not method.learns_weights:
        raise PaircreditError(f"{spec.method} has no pair weights, so it cannot use those in {spec.weights_from}.")
    source = folder / spec.weights_from
    source = source if source.exists() else Path(spec.weights_from)
    if not source.exists():
        raise PaircreditError(f"There is no file or folder {source} to take pair weights from.")
    if method.learns_weights and not _has_table(method, env):
        raise PaircreditError(
            f"{spec.method} has no table of pair weights on {spec.env} that the one in {spec.weights_from} could start."
        )
    numbered = isinstance(env.spec.observation, Discrete)  # else a table has a row for every time of an episode
    tables = load_weights(source, num_states(env.spec) if numbered else env.spec.horizon)
    members = []
    for index, seed in enumerate(seeds):
        table, number = tables[index % len(tables)], {"weights": index % len(tables)}
        own = with_values(method, table=jnp.asarray(table, dtype=float)) if takes_table else method
        members.append(Member(seed, env, own, table, labels | number))
    return members


def _has_table(method: Any, env: Any) -> bool:
    """Whether what the method learns by metagradient is a table of pairs, and no network nor anything else."""
    learner = jax.eval_shape(lambda key: method.init(key, env), jax.random.key(0))
    return isinstance(learner.weights.parameters, MatrixWeights)


def _start_weights(members: list[Member], method: Method, spec: TrainingSpec) -> Any:
    if members[0].table is None or not method.learns_weights:
        return None
    tables = jnp.stack([jnp.asarray(member.table, dtype=float) for member in members])
    if not spec.learn_weights:
        return jax.vmap(FixedTable)(tables)
    clipped = jnp.clip(tables, 1e-6, 1 - 1e-6)
    return jax.vmap(SigmoidTable)(jnp.log(clipped) - jnp.log1p(-clipped))


def _length(chunk: Chunk) -> int:
    return int(next(iter(chunk.summaries.values())).shape[1])


def _rows(chunk: Chunk, members: list[Member], stride: int, per_update: int, spec: EnvSpec) -> list[dict[str, Any]]:
    """A row per member and stride; where rollouts are segments, nobody knows the number of episodes beforehand."""
    count, rows = _length(chunk), []
    for begin, end in itertools.pairwise(row_edges(chunk.first_update, count, stride, per_update)):
        update = chunk.first_update + begin
        means = {
            name: (np.max if name.startswith(BEST) else np.mean)(values[:, begin:end].astype(float), axis=1)
            for name, values in chunk.summaries.items()
        }
        for index, member in enumerate(members):
            rows.append(
                {"member": index, "seed": member.seed, **member.labels}
                | {"update": update}
                | ({"episodes": update * per_update} if spec.whole_episodes else {})
                | {"frames": update * per_update * spec.horizon * spec.frames_per_step}
                | {name: rounded(float(values[index])) for name, values in means.items()}
            )
    return rows


def row_edges(first_update: int, count: int, stride: int, per_update: int) -> list[int]:
    """Where the rows of a chunk begin, and its end, counted from its first update.

    Where an update is an episode, some episodes have a row of their own (`logged_episodes`).
    """
    edges = {*range(0, count, stride), count}
    if per_update == 1 and stride > 1:
        for episode in logged_episodes(first_update + count):
            edges |= {episode - 1 - first_update, episode - first_update}
    return sorted(edge for edge in edges if 0 <= edge <= count)


def logged_episodes(total: int) -> list[int]:
    """Of the first `total` episodes those that have a row of their own: about the same number in every decade.

    They are those of bsuite's logs, which can so be made of our rows: what is cumulative follows from the rows before.
    """
    found, factor = [number for number in range(1, 10) if number <= total], 1
    while 10 * factor <= total:
        found += [factor * step for step in _DECADE if factor * step <= total]
        factor *= 10
    return found


def _numbers(chunk: Chunk, env: EnvSpec) -> str:
    """The newest means over members, for a person who watches; a dash until an episode has ended."""
    names = {"episode_return": "return"} | {name: name.replace("_", " ") for name in env.watched}
    known = {title: chunk.summaries[name] for name, title in names.items() if name in chunk.summaries}
    if "ended_episodes" in chunk.summaries:
        known["return"] = known["return"][chunk.summaries["ended_episodes"] > 0]
    return ", ".join(f"{title} {_mean(values)}" for title, values in known.items())


def _mean(values: np.ndarray) -> str:
    """As a text; in double precision, because sums of large rewards leave the single one behind."""
    if not values.size:
        return "–"
    mean = values.mean(dtype=float)
    return f"{mean:.2f}" if abs(mean) < LONG else f"{mean:.3g}"


def _arrays(state: LoopState, members: list[Member], learned: bool, tables: bool) -> dict[str, np.ndarray]:
    arrays = {"seeds": np.array([member.seed for member in members])}
    for name in members[0].labels:
        arrays[f"label_{name}"] = np.array([member.labels[name] for member in members])
    learner = state.learner
    methods = [member.method for member in members]
    if learned and has_tables(methods, state) and (tables or may_be_kept(methods, state, 1)):
        arrays["weights"] = weight_tables(methods, state)
    if tables:
        arrays["policy_logits"] = np.asarray(learner.policy.parameters.logits)
    return arrays


def _snapshot_arrays(snapshots: dict[int, np.ndarray]) -> dict[str, np.ndarray]:
    if not snapshots:
        return {}
    return {"snapshots": np.stack(list(snapshots.values())), "snapshot_updates": np.array(list(snapshots))}
