"""`paircredit watch`: an episode of Key-to-Door as an animated GIF, with what each action is credited with."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro

from paircredit.commands import parse_options
from paircredit.errors import PaircreditError

if TYPE_CHECKING:
    from paircredit.envs.key_to_door import KeyToDoor
    from paircredit.methods.rule import Credit
    from paircredit.studies.key_to_door.episode import Episode
    from paircredit.types import Trajectory

TASK = "key-to-door"


@dataclasses.dataclass(frozen=True)
class WatchOptions:
    """Write an episode of Key-to-Door as an animated GIF, with rewards and the credit of every action."""

    what: tyro.conf.Positional[str]
    """Folder of a finished run, or `key-to-door`: an optimal player, with handcrafted credit."""
    out: Path | None = None
    """The GIF; must not exist (default: watch.gif in the run's folder, or key-to-door.gif)."""
    seed: int = 0
    """Of the episode."""
    scale: int = 24
    """Side of a cell of the map in pixels, 16 to 64; everything else grows with it."""
    frames_per_second: int = 8
    """How fast, 1 to 50."""


def run(words: Sequence[str]) -> int:
    options = parse_options(WatchOptions, words, "paircredit watch")
    folder = Path(options.what)
    scripted = options.what == TASK and not folder.exists()
    out = options.out or (Path(f"{TASK}.gif") if scripted else folder / "watch.gif")
    if not scripted and not folder.is_dir():
        raise PaircreditError(f"There is no folder {folder}; give the folder of a finished run, or {TASK}.")
    _check_out(out)
    from paircredit.runs.files import write_file
    from paircredit.studies.key_to_door.episode import animation, check_speed_and_scale
    from paircredit.training.members import refuse_seeds

    refuse_seeds([options.seed])
    check_speed_and_scale(options.scale, options.frames_per_second)
    episode = optimal_episode(options.seed) if scripted else trained_episode(folder, options.seed)
    content = animation(episode, options.scale, options.frames_per_second)
    _check_out(out)
    write_file(out, content)
    print(f"The episode is in {out} ({len(content) / 1e6:.1f} MB)")
    return 0


def optimal_episode(seed: int) -> Episode:
    """An episode of the optimal player; its actions are credited by the handcrafted weights, without a baseline."""
    import jax
    import jax.numpy as jnp

    from paircredit.envs.key_to_door import KeyToDoorConfig
    from paircredit.envs.key_to_door_players import optimal_player, play
    from paircredit.estimators import pairwise_sum
    from paircredit.methods.rule import Credit
    from paircredit.weights import handcrafted_weights

    env = KeyToDoorConfig().build()
    trajectory = jax.jit(lambda key: play(env, optimal_player, key, 1))(jax.random.key(seed))
    weights = handcrafted_weights(env).matrix()
    returns = jax.vmap(pairwise_sum, (None, 0, 0))(weights, trajectory.rewards, trajectory.valid)
    credit = Credit(returns, weights[None], trajectory.rewards, jnp.zeros_like(returns))
    return _episode(env, trajectory, credit, "An optimal player, and the handcrafted credit of its actions")


def trained_episode(folder: Path, seed: int) -> Episode:
    """An episode of the policy that the first member of a finished run has learned, with that method's credit."""
    import jax

    from paircredit.envs.key_to_door import KeyToDoor
    from paircredit.experiments.learners import first_settings, load_learner
    from paircredit.experiments.spec import TrainingSpec, from_json
    from paircredit.results.exhibits import title
    from paircredit.runs import read_run
    from paircredit.runs.manifest import MANIFEST
    from paircredit.training import collect_episodes

    if not (folder / MANIFEST).exists():
        raise PaircreditError(f"{folder} is not the folder of a run; give one, or {TASK}.")
    run = read_run(folder)
    spec = from_json(run.kind, run.spec)
    if not isinstance(spec, TrainingSpec) or spec.env != TASK:
        what = spec.env if isinstance(spec, TrainingSpec) else run.kind
        raise PaircreditError(f"The run {folder} is of {what}, but only runs of {TASK} can be watched.")
    method, env = first_settings(spec)
    assert isinstance(env, KeyToDoor)
    learner = load_learner(run, method, env)

    @jax.jit
    def act(learner: Any, key: jax.Array) -> tuple[Trajectory, Credit]:
        trajectory = jax.tree.map(lambda x: x[:1], collect_episodes(method, learner, env, key))
        return trajectory, method.credit(learner, trajectory)

    trajectory, credit = act(learner, jax.random.key(seed))
    batches = 1 if spec.protocol == "online" else spec.inner_updates + 1
    frames = spec.updates * batches * method.episodes * env.horizon
    return _episode(env, trajectory, credit, f"{title(spec.method)}, trained for {frames:,} frames")


def _episode(env: KeyToDoor, trajectory: Trajectory, credit: Credit, title: str) -> Episode:
    import jax
    import numpy as np

    from paircredit.studies.key_to_door.episode import Episode

    trajectory, credit = jax.device_get(jax.tree.map(lambda x: x[0], (trajectory, credit)))
    return Episode(
        observations=trajectory.observations,
        actions=np.asarray(trajectory.actions),
        rewards=np.asarray(trajectory.rewards),
        advantages=np.asarray(credit.advantages),
        weights=np.asarray(credit.weights),
        of_rewards=np.array_equal(credit.signal, trajectory.rewards),
        starts=(env.key_steps, env.door_start),
        title=title,
    )


def _check_out(out: Path) -> None:
    from paircredit.runs.files import refuse_file

    if out.suffix.lower() != ".gif":
        raise PaircreditError(f"{out} is to be a GIF; give it a name that ends in .gif.")
    refuse_file(out)
