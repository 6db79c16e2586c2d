"""`paircredit watch`: a learner is kept and comes back, an episode becomes a GIF, everything else a sentence."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from PIL import Image

from paircredit.commands.watch import optimal_episode, trained_episode
from paircredit.experiments import TrainingSpec, Variant, training_run
from paircredit.experiments.learners import first_settings, load_learner
from paircredit.experiments.spec import as_json
from paircredit.experiments.training_run import Silent
from paircredit.methods.loops import Trained
from paircredit.runs import RunWriter, read_run
from paircredit.settings import replace_dotted
from paircredit.studies.key_to_door.episode import Episode, animation, frame
from tests.sentences import refused

TINY = {"network.filters": (2, 2), "network.picture_width": 4, "network.trunk": (4, 4), "inner.episodes": 2}
SPEC = TrainingSpec(
    "run",
    "key-to-door",
    "h-pwr",
    2,
    (0, 1),
    {"key_steps": 3, "apple_steps": 6, "door_steps": 3},
    TINY,
    preset="small",
    variants=(Variant(label="paid well", env_settings={"mean": 7.0, "variance": 0.0}), Variant(label="paid badly")),
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Any]]:
    """A run of two variants and two seeds each, and the learners that it ended with."""
    folder, ended, real = tmp_path_factory.mktemp("watch"), [], training_run.train

    def train(*arguments: Any, **more: Any) -> Any:
        state = real(*arguments, **more)
        ended.append(jax.device_get(state.learner))
        return state

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training_run, "train", train)
        training_run.run_training(SPEC, folder, Silent())
    yield folder / "run", ended[0]


@pytest.fixture
def run(trained: tuple[Path, Any], tmp_path: Path) -> Path:
    """A copy of the run, to do things to."""
    shutil.copytree(trained[0], tmp_path / "run")
    return tmp_path / "run"


def test_the_first_learner_comes_back_with_fresh_optimisers(trained: tuple[Path, Any]) -> None:
    path, stacked = trained
    method, env = first_settings(SPEC)
    assert float(env.mean) == 7.0, "the first variant's"
    learner = load_learner(read_run(path), method, env)
    fresh = jax.eval_shape(method.init, jax.random.key(0), env)
    assert jax.tree.structure(learner) == jax.tree.structure(fresh)
    for name in ("policy", "weighted_value", "weights"):
        part, everybody = getattr(learner, name), getattr(stacked, name)
        assert isinstance(part, Trained)
        for one, all_of_them in zip(
            jax.tree.leaves(part.parameters), jax.tree.leaves(everybody.parameters), strict=True
        ):
            np.testing.assert_array_equal(one, all_of_them[0])
        assert not any(leaf.any() for leaf in jax.tree.leaves(part.state))


def test_a_learner_of_other_networks_is_refused(trained: tuple[Path, Any]) -> None:
    method, env = first_settings(SPEC)
    wider = replace_dotted(method, {"network.trunk": (5, 4)}, "h-pwr")
    with refused("learner.npz was made by a program with another state", "train it again"):
        load_learner(read_run(trained[0]), wider, env)


def test_a_run_becomes_a_gif(run_cli, run: Path) -> None:
    code, out, err = run_cli("watch", run, "--scale", 16, "--frames-per-second", 16)
    assert code == 0, err
    assert str(run / "watch.gif") in out
    with Image.open(run / "watch.gif") as gif:
        assert gif.format == "GIF" and gif.n_frames == 13, "the first observation and twelve steps"
        durations = []
        for number in range(gif.n_frames):
            gif.seek(number)
            durations.append(gif.info["duration"])
    assert sum(durations[:-1]) == 750 and durations[-1] == 3000
    code, _, err = run_cli("watch", run)
    assert code == 2
    assert "watch.gif exists already" in err
    assert read_run(run).arrays(), "the run is as good as before"


def test_the_credit_is_the_methods_own(trained: tuple[Path, Any]) -> None:
    episode = trained_episode(trained[0], seed=5)
    assert episode.title == "H-PWR, trained for 48 frames"
    assert episode.starts == (3, 9) and episode.of_rewards
    value = load_learner(read_run(trained[0]), *first_settings(SPEC)).weighted_value.parameters
    baseline = jax.vmap(value)(jax.tree.map(lambda x: x[:-1], episode.observations))
    expected = (np.triu(episode.weights) * episode.rewards).sum(axis=1) - baseline
    np.testing.assert_allclose(episode.advantages, expected, rtol=1e-4, atol=1e-5)
    assert set(np.unique(episode.rewards)) <= {0.0, 7.0, 10.0}


@pytest.fixture(scope="module")
def scripted() -> Episode:
    return optimal_episode(seed=0)


def test_the_scripted_player_and_its_credit(scripted: Episode) -> None:
    episode = scripted
    assert episode.edges == (0, 15, 105, 120)
    assert episode.rewards[105:].sum() == 10.0
    opened = int(np.flatnonzero(episode.rewards[105:])[0])
    np.testing.assert_allclose(episode.advantages[:15], 10 * 0.92**opened, rtol=1e-5)
    gif = animation(episode, 16, 8)
    assert len(gif) < 600_000
    with Image.open(io.BytesIO(gif)) as picture:
        assert picture.n_frames == 121
        for time in (0, 17, 60, 119, 120):
            picture.seek(time)
            shown, drawn = np.asarray(picture.convert("RGB"), int), np.asarray(frame(episode, time, 16), int)
            assert shown.shape == drawn.shape
            assert np.abs(shown - drawn).max() < 64 and np.abs(shown - drawn).mean() < 1, "few colours, but the right"


def test_frames_show_what_they_say(scripted: Episode) -> None:
    episode = scripted
    blank = Episode(**{**vars(episode), "advantages": np.zeros(120), "weights": np.zeros((120, 120))})
    blue, amber = (0, 114, 178), (230, 159, 0)
    for shown, before in ((4, 15), (12, 15)):
        picture = np.asarray(frame(episode, shown, 24))
        bars = (picture[346:408] == blue).all(axis=-1).any(axis=0)
        assert bars[60 : 60 + 5 * shown].all() and not bars[60 + 5 * (shown + 1) :].any(), "revealed up to now"
        credited = (picture[272:322] == amber).all(axis=-1).any(axis=0)
        assert credited.any() and not credited[: 60 + 5 * 105].any(), f"the door's reward only, before {before}"
        empty = np.asarray(frame(blank, shown, 24))
        assert not (empty[272:408] == blue).all(axis=-1).any() and not (empty[272:322] == amber).all(axis=-1).any()


def test_the_task_can_be_watched_before_any_training(
    run_cli, scripted: Episode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run_cli("watch", "key-to-door", "--seed", 1, "--scale", 16)
    assert code == 0, err
    assert "key-to-door.gif" in out
    with Image.open(tmp_path / "key-to-door.gif") as gif:
        assert gif.n_frames == 121
        other = np.asarray(gif.convert("RGB"), int)
    first = np.asarray(frame(scripted, 0, 16), int)
    assert np.abs(other - first).max() > 100, "another seed, another episode"
    assert run_cli("watch", "key-to-door")[0] == 2


def unfinished(folder: Path) -> None:
    RunWriter(folder / "stopped", "training", as_json(SPEC) | {"name": "stopped"})._lock.release()


def older(folder: Path) -> None:
    with RunWriter(folder / "older", "training", as_json(SPEC) | {"name": "older"}) as writer:
        writer.finish({"seeds": np.zeros(1)})


def of_the_dag(folder: Path) -> None:
    with RunWriter(folder / "dag", "training", as_json(TrainingSpec("dag", "dag", "a2c", 1, (0,)))) as writer:
        writer.finish()


BAD = [
    (None, ["watch", "nowhere"], "There is no folder nowhere; give the folder of a finished run, or key-to-door."),
    (None, ["watch", "."], ". is not the folder of a run"),
    (of_the_dag, ["watch", "dag"], "The run dag is of dag, but only runs of key-to-door can be watched."),
    (
        unfinished,
        ["watch", "stopped"],
        "is not finished (it was stopped or is still running); go on with `paircredit re",
    ),
    (older, ["watch", "older"], "The run older has no learner.npz, which older versions did not write"),
    (None, ["watch", "key-to-door", "--out", "new/x.gif"], "x.gif cannot be written: there is no folder new."),
    (None, ["watch", "key-to-door", "--out", "x.png"], "x.png is to be a GIF; give it a name that ends in .gif."),
    (None, ["watch", "key-to-door", "--scale", "8"], "The scale is 8, but must be between 16 and 64."),
    (None, ["watch", "key-to-door", "--frames-per-second", "0"], "per second is 0, but must be between 1 and 50."),
]


@pytest.mark.parametrize(("prepare", "words", "message"), BAD, ids=[" ".join(words) for _, words, _ in BAD])
def test_refusals(
    run_cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prepare: Any, words: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    if prepare:
        prepare(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    code, out, err = run_cli(*words)
    assert code == 2 and out == ""
    assert message in err and err.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before


def test_a_place_that_cannot_be_written_is_told(run_cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paircredit.studies.key_to_door.episode.animation", lambda *_: b"GIF")
    code, _, err = run_cli("watch", "key-to-door", "--scale", 16, "--out", "/proc/x.gif")
    assert code == 2
    assert "/proc/x.gif cannot be written" in err and err.count("\n") == 1


def test_damage_is_told(run_cli, run: Path) -> None:
    learner = run / "learner.npz"
    learner.write_bytes(learner.read_bytes()[:-5])
    code, _, err = run_cli("watch", run)
    assert code == 2
    assert "learner.npz is damaged" in err and err.count("\n") == 1
    assert json.loads((run / "manifest.json").read_text())["status"] == "finished"
    assert not (run / "watch.gif").exists()
