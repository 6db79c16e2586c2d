"""Members with other settings in one run: the numbers of runs of their own, told apart by labels."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paircredit.commands.runs import say_return
from paircredit.experiments import TrainingSpec, Variant
from paircredit.experiments.spec import as_json, from_json, variants_of
from paircredit.experiments.training_run import Silent, run_training
from paircredit.runs import RunWriter, find_runs, read_run
from paircredit.training.loop import chunk_program
from tests.exhibits import table_of
from tests.sentences import refused

NOISY = Variant(label="noisy", env_settings={"variance": 4.0})
FAST = Variant(label="fast", method_settings={"inner.learning_rate": 0.2})
PLAIN = Variant(label="plain")
SPEC = TrainingSpec(
    "run", "umbrella", "a2c", 20, (3, 4), {"length": 3, "mean": 0.5, "variance": 0.0}, {"inner.episodes": 4}
)


def rows_of(path: Path, **labels: Any) -> list[dict[str, Any]]:
    """The rows of some members, without what only tells members apart."""
    chosen = [row for row in read_run(path).metrics() if all(row.get(k) == v for k, v in labels.items())]
    return [{k: v for k, v in row.items() if k != "member" and k not in labels} for row in chosen]


def test_each_variant_is_as_a_run_of_its_own_and_all_are_one_program(tmp_path: Path) -> None:
    before = chunk_program()._cache_size()
    together = dataclasses.replace(SPEC, variants=(PLAIN, NOISY, FAST))
    run_training(together, tmp_path / "together", Silent())
    assert chunk_program()._cache_size() == before + 1
    alone = {
        "plain": SPEC,
        "noisy": dataclasses.replace(SPEC, env_settings={**SPEC.env_settings, "variance": 4.0}),
        "fast": dataclasses.replace(SPEC, method_settings={**SPEC.method_settings, "inner.learning_rate": 0.2}),
    }
    for label, spec in alone.items():
        run_training(spec, tmp_path / label, Silent())
        expected = rows_of(tmp_path / label / "run")
        assert len(expected) == 40
        assert rows_of(tmp_path / "together" / "run", variant=label) == expected
    curves = [rows_of(tmp_path / label / "run") for label in alone]
    assert curves[0] != curves[1] and curves[0] != curves[2], "the variants did something"


def test_labels_are_in_the_rows_and_in_the_arrays(tmp_path: Path) -> None:
    variants = tuple(
        Variant({"noise": "much" if variance else "none", "σ²": variance}, {"variance": variance})
        for variance in (0.0, 4.0)
    )
    run_training(dataclasses.replace(SPEC, variants=variants), tmp_path, Silent())
    run = read_run(tmp_path / "run")
    assert [(row["member"], row["seed"], row["noise"], row["σ²"]) for row in run.metrics()[:4]] == [
        (0, 3, "none", 0.0),
        (1, 4, "none", 0.0),
        (2, 3, "much", 4.0),
        (3, 4, "much", 4.0),
    ]
    arrays = run.arrays()
    assert arrays["label_noise"].tolist() == ["none", "none", "much", "much"]
    np.testing.assert_array_equal(arrays["label_σ²"], [0.0, 0.0, 4.0, 4.0])
    np.testing.assert_array_equal(arrays["seeds"], [3, 4, 3, 4])


def test_variants_and_given_weights_go_together(tmp_path: Path) -> None:
    np.save(tmp_path / "tables.npy", np.random.default_rng(0).uniform(size=(2, 10, 10)).astype(np.float32))
    spec = TrainingSpec("run", "dag", "h-pwr", 4, (0, 1, 2), {"depth": 4}, weights_from="tables.npy")
    slow = Variant(label="slow", method_settings={"inner.learning_rate": 1e-4})
    run_training(dataclasses.replace(spec, variants=(PLAIN, slow)), tmp_path, Silent())
    arrays = read_run(tmp_path / "run").arrays()
    assert arrays["label_variant"].tolist() == ["plain"] * 3 + ["slow"] * 3
    np.testing.assert_array_equal(arrays["label_weights"], [0, 1, 0, 0, 1, 0])


def test_a_spec_without_variants_is_written_as_ever() -> None:
    assert "variants" not in as_json(SPEC)
    assert variants_of(SPEC) == [Variant()]


def test_a_variant_may_have_seeds_of_its_own(tmp_path: Path) -> None:
    run_training(
        dataclasses.replace(SPEC, variants=(dataclasses.replace(PLAIN, seeds=(7,)), NOISY)), tmp_path, Silent()
    )
    rows = read_run(tmp_path / "run").metrics()
    assert {(row["member"], row["variant"], row["seed"]) for row in rows} == {
        (0, "plain", 7),
        (1, "noisy", 3),
        (2, "noisy", 4),
    }


def test_a_spec_with_variants_survives_being_written_down() -> None:
    spec = dataclasses.replace(SPEC, variants=(PLAIN, NOISY, FAST))
    assert from_json("training", json.loads(json.dumps(as_json(spec)))) == spec


def test_a_part_that_nobody_knows_is_refused() -> None:
    with refused("Did you mean 'env_settings'?"):
        from_json("training", as_json(SPEC) | {"variants": [{"label": "a", "env_setings": {}}]})


REFUSED = {
    "unknown setting": ((Variant(label="a", method_settings={"inner.learnin_rate": 1.0}),), "learning_rate"),
    "unknown env setting": ((Variant(label="a", env_settings={"lenght": 1}),), "length"),
    "no label": ((Variant(env_settings={"variance": 1.0}),), "Every variant needs the same labels"),
    "other labels": ((PLAIN, Variant({"x": 1})), "Every variant needs the same labels"),
    "same labels": ((PLAIN, PLAIN), "Two variants have the same labels, variant = plain"),
    "taken name": ((Variant({"seed": 1}),), "cannot be called 'seed'"),
    "text and number": ((PLAIN, Variant(label=3)), "a text in all variants or a number in all of them, not 3"),
    "no plain value": ((Variant(label=[1]),), "not [1]"),
    "static": (
        (PLAIN, Variant(label="big", method_settings={"inner.episodes": 8})),
        "Members of one program must agree",
    ),
    "horizon": ((PLAIN, Variant(label="long", env_settings={"length": 9})), "Members of one program must agree"),
}


@pytest.mark.parametrize(("variants", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_run_is_refused_before_a_folder_is_made(tmp_path: Path, variants: Any, message: str) -> None:
    with refused(message):
        run_training(dataclasses.replace(SPEC, variants=variants), tmp_path / "new", Silent())
    assert not (tmp_path / "new").exists()


def test_the_command_line_tells_variants_apart(run_cli, tmp_path: Path) -> None:
    run_training(dataclasses.replace(SPEC, variants=(PLAIN, NOISY)), tmp_path, Silent())
    code, out, _ = run_cli("resume", tmp_path / "run")
    assert code == 0
    assert "Return over the last tenth, variant plain, mean over 2 seeds" in out
    assert "Return over the last tenth, variant noisy, mean over 2 seeds" in out


def test_a_return_that_nobody_knows_is_not_said_to_be_0(capsys, tmp_path: Path) -> None:
    """In segments of episodes: one of two seeds has ended an episode, then none has."""
    spec = dataclasses.replace(SPEC, updates=10, seeds=(3, 4))
    rows = [
        {"member": member, "seed": seed, "update": 9, "frames": 90, "episode_return": own, "ended_episodes": ended}
        for member, (seed, own, ended) in enumerate(((3, 0.0, 0.0), (4, 7.0, 1.0)))
    ]
    for name, found in (("one", rows), ("none", rows[:1])):
        with RunWriter(tmp_path / name, "training", as_json(spec)) as writer:
            writer.append(found)
            writer.finish()
        say_return(spec, tmp_path / name)
    first, _, second, _ = capsys.readouterr().out.splitlines()
    assert first.endswith("one seed: 7.000") and second.endswith("not known, no episode has ended")


def test_what_is_printed_is_what_the_table_says(run_cli, tmp_path: Path) -> None:
    """Also where recorded points do not begin with the last tenth."""
    code, out, _ = run_cli("train", "dag", "a2c", "--env.depth", "4", "--frames", "1500", "--out", tmp_path / "mine")
    (row,) = table_of("training-runs", find_runs(tmp_path)).rows
    assert code == 0 and "{:.3f} [{:.3f}, {:.3f}]".format(*row[7:]) in out
