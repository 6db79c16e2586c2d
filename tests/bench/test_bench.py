"""The benchmark runs, its numbers fit together, and the command writes them down."""

from __future__ import annotations

import dataclasses
import json

import jax
import jax.numpy as jnp
import pytest
from tools.bench import BenchSpec, Measurement, bench, compile_all, growth, measure, training_speed
from tools.bench.__main__ import main
from tools.bench.measure import Program
from tools.bench.profile import Profile

from paircredit.envs import make_environment
from paircredit.methods.presets import preset_environment
from tests.sentences import refused

TINY = BenchSpec(
    method="meta-pwr",
    preset="small",
    members=2,
    updates=1,
    repeats=2,
    env_settings={"key_steps": 3, "apple_steps": 3, "door_steps": 3},
    method_settings={"inner.episodes": 2, "network.filters": (2, 2), "network.trunk": (8, 8)},
)


@pytest.fixture
def traced(monkeypatch):
    """Functions are traced and not compiled, which takes most of the time; the clock says a second, then half of it."""

    def trace(function, arguments):
        jax.eval_shape(function, *arguments)
        return Program(None, arguments, 3.0)

    def look_at_the_clock(program, repeats):
        return Measurement(1.0 / repeats, 0.5 / repeats, program.compile_seconds, 100, 10)

    monkeypatch.setattr(
        training_speed, "compile_all", lambda all_of: {name: trace(*one) for name, one in all_of.items()}
    )
    monkeypatch.setattr(training_speed, "compile_program", trace)
    monkeypatch.setattr(training_speed, "measure", look_at_the_clock)


def test_functions_are_compiled_side_by_side_and_measured():
    ones = jnp.ones((1000,))
    programs = compile_all({"sine": (lambda x: jnp.sin(x).sum(), (ones,)), "sum": (jnp.sum, (ones,))})
    assert list(programs) == ["sine", "sum"]
    found = measure(programs["sine"], 3)
    assert 0 < found.fastest <= found.seconds < 1 and found.compile_seconds > 0
    assert found.argument_bytes == 4000


@pytest.mark.nightly
def test_the_parts_of_an_update_are_timed(traced):
    row = bench(TINY)
    assert set(row["parts"]) == {"rollout", "policy", "values", "weights", "meta", "update alone"}
    assert row["seconds_per_update"] == row["seconds_update_alone"] == 0.5
    assert row["frames_per_second"] == 2 * 2 * 9 / 0.5
    json.dumps(row)


@pytest.fixture
def never_made(monkeypatch):
    """Members are not even started."""
    made = training_speed._Made(*[None] * 5, (lambda: 0, ()))
    monkeypatch.setattr(training_speed, "_made", lambda spec, method, env: made)


def test_growth_changes_one_size_at_a_time(monkeypatch, traced, never_made):
    monkeypatch.setattr(training_speed, "_row", lambda spec, made, whole: {"spec": spec})
    axes = {"members": (1,), "episodes": (3,), "apple_steps": (2,), "pair_width": (4,)}
    rows = {row["axis"]: row for row in growth(TINY, axes)}
    assert {axis: row["value"] for axis, row in rows.items()} == {axis: values[0] for axis, values in axes.items()}
    assert rows["members"]["spec"] == dataclasses.replace(TINY, members=1)
    assert rows["episodes"]["spec"].method_settings == {**TINY.method_settings, "inner.episodes": 3}
    assert rows["apple_steps"]["spec"].env_settings == {**TINY.env_settings, "apple_steps": 2}
    assert rows["pair_width"]["spec"].method_settings == {**TINY.method_settings, "network.pair_width": 4}


def test_growth_times_no_size_twice(monkeypatch, traced, never_made):
    timed = []
    monkeypatch.setattr(training_speed, "_row", lambda spec, made, whole: timed.append(spec) or {"number": len(timed)})
    rows = list(growth(TINY, {"members": (1, 2), "episodes": (2, 3), "apple_steps": (2,)}))
    assert [(row["axis"], row["value"]) for row in rows][1:3] == [("members", 2), ("episodes", 2)]
    assert [row["number"] for row in rows] == [1, 2, 2, 3, 4], "two members of two episodes are where it starts from"


def test_a_preset_is_also_one_of_the_environment():
    _, env = training_speed.refuse_what_cannot_be_timed(BenchSpec(env="key-to-door", preset="small", members=1))
    expected = make_environment("key-to-door", **preset_environment("small", "key-to-door"))
    assert (env.colours == expected.colours).all() and (env.colours != make_environment("key-to-door").colours).any()


def test_nothing_to_time_is_refused():
    with refused("at least 1"):
        bench(BenchSpec(members=0))


def test_the_command_never_overwrites_a_file(tmp_path, capsys):
    file = tmp_path / "bench.json"
    file.write_text("mine")
    assert main(["--json", str(file)]) == 2
    assert "exists already" in capsys.readouterr().err and file.read_text() == "mine"
    assert main(["--json", str(tmp_path / "nowhere" / "bench.json")]) == 2  # and not after the first method
    assert "there is no folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--methods a2c rgm --env minatar/breakout", "rgm needs whole episodes"),
        ("--methods a2d", "no method called 'a2d'. Did you mean 'a2c'"),
        ("--members 0", "must be at least 1"),
        ("--settings inner.episodes=100000000 --methods a2c", "too much for the memory"),
        (
            "--env atari/pong --settings env.game=breakout",
            "The game is a part of the name: python -m tools.bench --env atari/breakout",
        ),
        ("--env minatar/breakout --settings env.game=freeway", "bench --env minatar/freeway"),
        ("--env bsuite/catch_noise --settings env.game=catch", "no setting of bsuite/catch_noise"),
        ("--env minatar/brakeout --settings env.game=freeway", "no environment called"),
        ("--memers 3", "did you mean --members INT?"),
    ],
)
@pytest.mark.usefixtures("users_view")
def test_what_cannot_be_timed_is_refused(words, message, capsys):
    assert main(words.split()) == 2
    said = capsys.readouterr()
    assert message in said.err and said.err.count("\n") == 1 and not said.out


def test_settings_reach_the_environment_and_the_method(monkeypatch, capsys):
    seen = []

    def remember(spec, parts, watched):
        seen.append(spec)
        return {"method": "a2c", "members": 1, "seconds_per_update": 1.0, "frames_per_second": 1.0} | dict.fromkeys(
            ("compile_seconds", "temporary_bytes"), 1.0
        )

    monkeypatch.setattr("tools.bench.bench", remember)
    words = ["env.apple_steps=5", "env.palette=dark", "inner.episodes=3", "network.filters=[2, 2]"]
    assert main(["--methods", "a2c", "--no-parts", "--settings", *words]) == 0
    assert seen[0].env_settings == {"apple_steps": 5, "palette": "dark"}
    assert seen[0].method_settings == {"inner.episodes": 3, "network.filters": [2, 2]}
    assert main(["--methods", "a2c", "--settings", "episodes"]) == 2
    assert "NAME=VALUE" in capsys.readouterr().err


def test_a_command_that_is_stopped_keeps_what_it_measured(tmp_path, monkeypatch):
    def stop_at_the_second(spec, parts, watched):
        if spec.method == "h-pwr":
            raise KeyboardInterrupt
        return {"method": "a2c", "members": 1, "seconds_per_update": 1.0, "frames_per_second": 1.0} | dict.fromkeys(
            ("compile_seconds", "temporary_bytes"), 1.0
        )

    monkeypatch.setattr("tools.bench.bench", stop_at_the_second)
    file = tmp_path / "bench.json"
    assert main(["--methods", "a2c", "h-pwr", "--no-parts", "--json", str(file)]) == 130
    assert [row["method"] for row in json.loads(file.read_text())["rows"]] == ["a2c"]


@pytest.mark.nightly
def test_a_watched_program_is_compiled_apart_only_where_operations_would_not_be_seen(monkeypatch, traced):
    compiled = []
    monkeypatch.setattr(
        training_speed,
        "compile_program",
        lambda f, given, options=None: compiled.append(options) or Program(None, given, 1.0),
    )
    monkeypatch.setattr(training_speed, "profile", lambda program, given: Profile(1.0, 0.5, (), ()))
    bench(TINY, parts=False, watched=True)
    assert compiled == [None]
    monkeypatch.setattr(training_speed, "one_by_one", lambda: {"an": "option"})
    bench(TINY, parts=False, watched=True)
    assert compiled[1:] == [None, {"an": "option"}]
