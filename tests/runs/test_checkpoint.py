"""A checkpoint comes back bit for bit, or not at all."""

from __future__ import annotations

import dataclasses
import zipfile
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paircredit.envs import make_environment
from paircredit.methods import make_method
from paircredit.runs.checkpoint import (
    ASSUMED_BYTES_PER_SECOND,
    Checkpoint,
    Position,
    Schedule,
    checkpoint_files,
    read_checkpoint,
    write_checkpoint,
)
from paircredit.runs.trees import DamagedFile, tree_sum
from paircredit.training import Plan, train
from paircredit.training.train import states_like
from tests.sentences import refused

POSITION = Position(250, 1.5, 1000, "aa", "bb", "cc")


def round_trip(folder: Path, tree: Any, like: Any = None) -> Any:
    path = write_checkpoint(folder, Checkpoint(POSITION, tree, {}))
    return read_checkpoint(path, tree if like is None else like).state


def assert_identical(one: Any, other: Any) -> None:
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert type(a) is type(b)
        if hasattr(a, "dtype"):
            assert a.dtype == b.dtype and a.shape == b.shape
            if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
                a, b = jax.random.key_data(a), jax.random.key_data(b)
            assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
        else:
            assert a == b


class Pair(NamedTuple):
    left: Any
    right: Any


class Nested(eqx.Module):
    table: Any
    rest: Any
    name: str = eqx.field(static=True, default="static")


TREES = {
    "types": {
        name: jnp.asarray([0, 1, 2], dtype=name)
        for name in ("float32", "float16", "bfloat16", "int32", "int8", "uint32", "uint8", "bool", "complex64")
    },
    "small floats": [jnp.asarray([0.5, -2.0], dtype=jnp.float8_e4m3fn), jnp.arange(4, dtype=jnp.bfloat16) / 3],
    "special numbers": jnp.array([np.nan, np.inf, -0.0, 1e-45], dtype=jnp.float32),
    "keys": {"one": jax.random.key(3), "many": jax.random.split(jax.random.key(4), (2, 3))},
    "another generator": jax.random.key(0, impl="rbg"),
    "scalars": [3, -1.5, True, 2j, jnp.array(7), np.float64(0.1), np.array(2, dtype=np.int64)],
    "nothing": [(), {}, None, jnp.zeros((0, 3)), ((),)],
    "nested modules": Nested(jnp.eye(2), Pair(Nested(jnp.ones(3), ()), {"a b/c": [jnp.zeros(1), {0: jnp.ones(1)}]})),
    "numpy": {"native": np.arange(6.0).reshape(2, 3), "columns first": np.asfortranarray(np.arange(6).reshape(2, 3))},
    "a leaf alone": jnp.arange(3),
}


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
def test_what_was_written_comes_back(tmp_path: Path, tree: Any) -> None:
    assert_identical(round_trip(tmp_path, tree), tree)


def test_float64_comes_back_where_there_is_float64(tmp_path: Path, x64: None) -> None:
    tree = {"a": jnp.array([1 / 3]), "b": jnp.arange(3)}
    assert tree["a"].dtype == np.float64
    assert_identical(round_trip(tmp_path, tree), tree)


def test_position_and_gathered_arrays_come_back(tmp_path: Path) -> None:
    kept = {
        "names": np.array(["a", "longer", "ü"]),
        "half": np.ones((2, 2), np.float16),
        "b": np.zeros(2, jnp.bfloat16),
    }
    path = write_checkpoint(tmp_path, Checkpoint(POSITION, jnp.ones(1), kept))
    read = read_checkpoint(path, jnp.ones(1))
    assert read.position == POSITION
    assert_identical(read.kept, kept)


def test_the_state_of_a_training_comes_back_into_the_shapes_alone(tmp_path: Path) -> None:
    arguments = ([make_method("meta-pwr")] * 2, [make_environment("dag", depth=4)] * 2, [0, 1])
    state = train(*arguments, Plan(updates=2), 2)
    assert_identical(round_trip(tmp_path, state, like=states_like(*arguments, Plan(updates=2))), state)


def test_the_memory_of_what_was_read_is_its_own(tmp_path: Path) -> None:
    """The loop takes over the memory of the state that it is given."""
    read = round_trip(tmp_path, jnp.arange(1000.0))
    jax.jit(lambda x: x + 1, donate_argnums=0)(read)
    assert read.is_deleted()


def test_there_is_no_pickle_in_it_and_none_is_written(tmp_path: Path) -> None:
    path = write_checkpoint(tmp_path, Checkpoint(POSITION, TREES["types"], {}))
    with np.load(path, allow_pickle=False) as file:
        assert all(file[name].dtype.kind in "biufc" for name in file.files)
        assert "state['bfloat16']" in file.files
    with refused("only arrays and numbers"):
        write_checkpoint(tmp_path, Checkpoint(POSITION, {"f": print}, {}))


@pytest.mark.parametrize(
    ("like", "difference"),
    [
        ({"a": jnp.ones(3), "b": jnp.ones(1)}, "lacks state['b']"),
        ({}, "only the file has state['a']"),
        ({"a": jnp.ones(4)}, "float32[3] there and float32[4] here"),
        ({"a": jnp.ones(3, dtype=int)}, "float32[3] there and int32[3] here"),
        ({"a": 1.0}, "float32[3] there and float[] here"),
        ({"a": jax.random.key(0)}, "float32[3] there and key<fry>[] here"),
    ],
)
def test_another_structure_is_refused(tmp_path: Path, like: Any, difference: str) -> None:
    with refused("another state", difference):
        round_trip(tmp_path, {"a": jnp.ones(3)}, like=like)


def test_another_format_is_refused_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paircredit.runs.checkpoint.FORMAT", 7)
    path = write_checkpoint(tmp_path, Checkpoint(POSITION, jnp.ones(1), {}))
    monkeypatch.undo()
    with refused("format 7", "format 1"):
        read_checkpoint(path, jnp.ones(1))


class TestDamage:
    tree: ClassVar = {
        "key": jax.random.key(1),
        "table": jnp.arange(12.0).reshape(3, 4),
        "half": jnp.ones(5, jnp.bfloat16),
    }

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        return write_checkpoint(tmp_path, Checkpoint(POSITION, self.tree, {"kept": np.arange(3)}))

    def test_no_flipped_byte_changes_what_is_read(self, path: Path) -> None:
        """Wherever it is, zip's own notes included."""
        content, noticed = path.read_bytes(), 0
        for position in range(len(content)):
            for flip in (1, 0x80):
                changed = bytearray(content)
                changed[position] ^= flip
                path.write_bytes(bytes(changed))
                try:
                    read = read_checkpoint(path, self.tree)
                except DamagedFile as error:
                    noticed += 1
                    assert str(error).startswith(str(path)) and "\n" not in str(error) and str(error).endswith(".")
                else:
                    assert_identical(read.state, self.tree)
                    assert read.position == POSITION
        assert noticed > 1.6 * len(content), "what is not noticed are dates and the like"

    def test_every_byte_of_every_array_is_protected(self, path: Path) -> None:
        content = path.read_bytes()
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                member = archive.read(info)
                begin = content.index(member, info.header_offset)
                for position in range(begin, begin + len(member)):
                    changed = bytearray(content)
                    changed[position] ^= 4
                    path.write_bytes(bytes(changed))
                    with pytest.raises(DamagedFile):
                        read_checkpoint(path, self.tree)

    @given(st.data())
    def test_a_cut_file_is_refused(self, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
        path = write_checkpoint(tmp_path_factory.mktemp("cut"), Checkpoint(POSITION, self.tree, {}))
        content = path.read_bytes()
        path.write_bytes(content[: data.draw(st.integers(0, len(content) - 1))])
        with pytest.raises(DamagedFile):
            read_checkpoint(path, self.tree)

    def test_arrays_of_another_checkpoint_are_noticed(self, path: Path, tmp_path: Path) -> None:
        """Whole members, with valid CRCs, but not those that the header was written for."""
        other = write_checkpoint(
            tmp_path,
            Checkpoint(dataclasses.replace(POSITION, updates=300), self.tree | {"table": jnp.ones((3, 4))}, {}),
        )
        with zipfile.ZipFile(path) as first, zipfile.ZipFile(other) as second:
            members = {name: second.read(name) for name in second.namelist()} | {"header.npy": first.read("header.npy")}
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in members.items():
                archive.writestr(name, content)
        with refused("do not match their SHA-256 sum"):
            read_checkpoint(path, self.tree)

    def test_a_missing_file_is_refused(self, tmp_path: Path) -> None:
        with refused("No such file"):
            read_checkpoint(tmp_path / "checkpoint-1.npz", self.tree)


def test_two_are_kept(tmp_path: Path) -> None:
    for updates in (5, 50, 250, 1000):
        write_checkpoint(tmp_path, Checkpoint(dataclasses.replace(POSITION, updates=updates), jnp.ones(1), {}))
    assert [updates for updates, _ in checkpoint_files(tmp_path)] == [1000, 250]
    # After going back to an older one, what lies ahead of it is no longer true.
    write_checkpoint(tmp_path, Checkpoint(dataclasses.replace(POSITION, updates=500), jnp.ones(1), {}))
    assert [updates for updates, _ in checkpoint_files(tmp_path)] == [500, 250]
    assert len(list(tmp_path.iterdir())) == 2


def test_sums_of_trees_see_names_types_shapes_and_content() -> None:
    trees = [
        {"a": np.zeros(4, np.float32)},
        {"b": np.zeros(4, np.float32)},
        {"a": np.zeros(4, np.int32)},
        {"a": np.zeros((2, 2), np.float32)},
        {"a": np.array([0, 0, 0, 1], np.float32)},
    ]
    assert len({tree_sum(tree) for tree in trees}) == len(trees)
    assert tree_sum(trees[0]) == tree_sum({"a": jnp.zeros(4)})


class TestSchedule:
    def made(self, seconds: float, cost: float, state: Any = (), until: float = 1000.0) -> list[float]:
        """Moments at which checkpoints are made, by a loop that asks every second."""
        clock, moments = [0.0], []
        schedule = Schedule(seconds, now=lambda: clock[0])
        while clock[0] < until:
            clock[0] += 1.0
            if schedule.due(state):
                moments.append(clock[0])
                with schedule.measured():
                    clock[0] += cost
        return moments

    def test_cheap_ones_come_at_their_distance(self) -> None:
        assert self.made(30.0, cost=0.0, until=100) == [30, 60, 90]

    def test_none_is_left_out_when_all_are_wanted(self) -> None:
        assert self.made(0.0, cost=5.0, until=18) == [1, 7, 13]

    @pytest.mark.parametrize("cost", [0.5, 2.0, 7.0])
    def test_dear_ones_take_two_hundredths_at_most(self, cost: float) -> None:
        state = np.zeros(int(cost * ASSUMED_BYTES_PER_SECOND), np.int8)
        moments = self.made(10.0, cost, state, until=3000)
        assert len(moments) > 5
        for number, moment in enumerate(moments, start=1):
            assert number * cost <= 0.02 * (moment + cost)
