"""The reconstructive memory agent, block by block: sizes, a literal memory of a thousand rows, gradients, decoders."""

from __future__ import annotations

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.envs.protocol import Discrete, EnvSpec, Pixels
from paircredit.networks import MemorySpec, NetworkSpec
from paircredit.networks.layers import LSTM, CellState, Dense
from paircredit.networks.perception import Perception, prepare
from paircredit.networks.reconstructive_memory import (
    Memory,
    PictureDecoder,
    Reader,
    ReconstructiveMemory,
    StateDecoder,
    largest,
)
from paircredit.types import PixelObservation
from tests.sentences import refused

KEY_TO_DOOR = EnvSpec("key-to-door", 4, Pixels(7, 11, 3, 1), 120)
SHORT = EnvSpec("short", 3, Discrete(5), 9)
TINY = MemorySpec(rows=40, width=4, encoder=6, controller=5, heads=2, top_reads=3, hidden=7)
NETWORK = NetworkSpec(filters=(2, 3), picture_width=6, trunk=(6, 5), precision="float32")


def generic(shapes, seed: int = 0, scale: float = 1.0):
    """A module of this structure, no parameter of which is 0: what is 0 could be forgotten."""
    rng = np.random.default_rng(seed)
    return jax.tree.map(lambda x: jnp.asarray(scale * rng.normal(size=x.shape), dtype=float), shapes)


def shapes_of(make, *arguments):
    return jax.eval_shape(lambda key: make(key, *arguments), jax.random.key(0))


class TestSizes:
    """Those of the published agent, with the paper's perception module (fact by fact)."""

    @pytest.fixture
    def network(self):
        return shapes_of(ReconstructiveMemory.random, KEY_TO_DOOR, NetworkSpec(), MemorySpec())

    def test_every_block(self, network):
        encoder = [part.shape for part in (network.seen, network.told, network.recalled.weight)]
        assert encoder == [(256, 400), (4 + 1, 400), (512 + 600, 400)], "261 + 512 + 600 inputs"
        assert network.code.weight.shape == (400, 200)
        assert network.lower.gates.weight.shape == (200 + 256, 4 * 256)
        assert network.upper.gates.weight.shape == (200 + 256 + 256, 4 * 256)
        assert network.reader.questions.weight.shape == (512, 3 * 200 + 3)
        assert [x.weight.shape for x in (network.policy.hidden, network.policy.out)] == [(1312, 200), (200, 4)]
        assert [x.weight.shape for x in (network.value.hidden, network.value.out)] == [(204, 200), (200, 1)]
        decoder = network.observation_decoder
        assert decoder.first.weight.shape == (200, 7 * 11 * 32)
        assert decoder.second.weight.shape == (3, 3, 32, 16) and decoder.last.weight.shape == (3, 3, 16, 3)
        assert network.action_decoder.weight.shape == (200, 4) and network.reward_decoder.weight.shape == (200, 1)
        assert isinstance(network.perception, Perception)

    def test_what_it_carries_and_thinks(self, network):
        state = jax.eval_shape(lambda n: n.initial_state(), network)
        assert [x.shape for x in (*state.lower, *state.upper, state.content)] == [(256,)] * 4 + [(600,)]
        assert state.memory.rows.shape == (120 + 50, 200), "as many rows as an episode can tell from a thousand"
        observation = PixelObservation(jnp.zeros((7, 11, 3), dtype=jnp.uint8), jnp.zeros((1,), dtype=bool))

        def think(network, observation):
            sensed = network.sense(observation, jnp.int32(1), jnp.zeros(()))
            _, thought = network.recall(sensed, network.initial_state(), jnp.int32(0))
            logits = network.action_logits(thought)
            return sensed, thought, logits, network.state_value(thought.code, logits)

        sensed, thought, logits, value = jax.eval_shape(think, network, observation)
        assert sensed.shape == (400,) and thought.code.shape == (200,) and thought.controls.shape == (512,)
        assert thought.read.content.shape == (600,) and thought.read.weights.shape == (3, 170)
        assert logits.shape == (4,) and value.shape == ()

    def test_numbered_states(self):
        network = shapes_of(ReconstructiveMemory.random, SHORT, NETWORK, TINY)
        assert network.observation_decoder.logits.weight.shape == (4, 5)
        assert network.rows == 9 + 3

    @pytest.mark.parametrize(
        "change, mentions",
        [
            ({"rows": 8}, ("9 steps", "8 rows", "memory.rows")),
            ({"rows": 10, "top_reads": 11}, ("memory.top_reads", "11", "10 rows")),
            ({"heads": 0}, ("memory.heads", "at least 1")),
        ],
    )
    def test_a_memory_that_does_not_fit_is_refused(self, change, mentions):
        with refused(*mentions):
            shapes_of(ReconstructiveMemory.random, SHORT, NETWORK, dataclasses.replace(TINY, **change))


def test_the_cell_by_hand():
    """Gates (i, g, f, o) from one product of [x, output]."""
    cell = LSTM(Dense(jnp.array([[1.0, 2.0, 3.0, 4.0], [0.5, -0.5, 0.25, 1.0]]), jnp.array([0.1, 0.2, 0.3, 0.4])))
    after = cell(jnp.array([0.5]), CellState(jnp.array([2.0]), jnp.array([-1.0])))

    def sigmoid(x: float) -> float:
        return 1 / (1 + np.exp(-x))

    i, g, f, o = 0.5 + 1.0 + 0.1, 1.0 - 1.0 + 0.2, 1.5 + 0.5 + 0.3, 2.0 + 2.0 + 0.4
    expected = sigmoid(f + 1) * -1.0 + sigmoid(i) * np.tanh(g)
    np.testing.assert_allclose(after.cell, [expected], rtol=1e-6)
    np.testing.assert_allclose(after.output, [sigmoid(o) * np.tanh(expected)], rtol=1e-6)
    assert all((x == 0).all() for x in cell.initial_state())


class TestReading:
    WIDTH, CONTROLS = 4, 6

    def reader(self, top_reads: int, seed: int = 0) -> Reader:
        spec = MemorySpec(rows=1000, width=self.WIDTH, heads=3, top_reads=top_reads)
        return generic(shapes_of(Reader.random, self.CONTROLS, spec), seed)

    @staticmethod
    @eqx.filter_jit
    def read(reader: Reader, controls: np.ndarray, rows: np.ndarray, kept: int):
        """From a memory of this many rows, the first of which were written one after another."""
        memory = Memory.empty(kept, TestReading.WIDTH, jnp.dtype(float))
        for step in range(len(rows)):
            memory = memory.write(jnp.int32(step), jnp.asarray(rows[step]))
        return reader(jnp.asarray(controls), memory)

    def literal(self, reader: Reader, controls: np.ndarray, rows: np.ndarray):
        """Every row compared and sorted, a list of reads, row by row: as the published code describes it."""
        asked = controls @ np.asarray(reader.questions.weight) + np.asarray(reader.questions.bias)
        contents, weights, strengths = [], np.zeros((reader.heads, len(rows))), []
        for head in range(reader.heads):
            key = asked[head * self.WIDTH : (head + 1) * self.WIDTH]
            strength = np.log1p(np.exp(asked[reader.heads * self.WIDTH + head]))
            scores = []
            for row in rows:
                norm = np.linalg.norm(row)
                scores.append(0.0 if norm == 0 else strength * (key @ row) / (norm * np.linalg.norm(key)))
            chosen = sorted(range(len(rows)), key=lambda r: (-scores[r], r))[: reader.top_reads]
            exponentials = np.exp([scores[r] for r in chosen])
            weights[head, chosen] = exponentials / exponentials.sum()
            contents.append(sum(weights[head, r] * rows[r] for r in chosen))
            strengths.append(strength)
        return np.concatenate(contents), weights, np.array(strengths)

    @pytest.mark.parametrize("written", [0, 1, 7, 20])
    @pytest.mark.parametrize("top_reads", [1, 5, 50])
    def test_a_few_rows_read_as_a_thousand_do(self, top_reads, written, x64):
        """Zeros outrank all rows that point away from the key, and take part in the softmax."""
        reader, rng = self.reader(top_reads, seed=written), np.random.default_rng(written)
        rows = np.zeros((1000, self.WIDTH))
        rows[:written] = rng.normal(size=(written, self.WIDTH)) * rng.uniform(0.1, 5, size=(written, 1))
        controls = rng.normal(size=self.CONTROLS)
        kept = MemorySpec(rows=1000, top_reads=top_reads).rows_needed(horizon=20)
        read = self.read(reader, controls, rows[:written], kept)
        content, weights, strengths = self.literal(reader, controls, rows)
        np.testing.assert_allclose(read.content, content, atol=1e-12)
        np.testing.assert_allclose(read.weights, weights[:, :kept], atol=1e-12)
        assert not weights[:, kept:].any(), "no row beyond those that are kept is ever read"
        np.testing.assert_allclose(read.strengths, strengths, atol=1e-12)

    def test_a_small_memory_has_no_zeros_to_spare(self, x64):
        """With all of its rows written, a memory also reads rows that point away."""
        reader, rng = self.reader(5), np.random.default_rng(1)
        controls = rng.normal(size=self.CONTROLS)
        asked = controls @ np.asarray(reader.questions.weight) + np.asarray(reader.questions.bias)
        rows = -asked[: self.WIDTH] + 0.1 * rng.normal(size=(6, self.WIDTH))
        assert MemorySpec(rows=6, top_reads=5).rows_needed(horizon=6) == 6
        read = self.read(reader, controls, rows, 6)
        content, weights, _ = self.literal(reader, controls, rows)
        np.testing.assert_allclose(read.content, content, atol=1e-12)
        assert ((np.asarray(read.weights[0]) > 0).sum(), (weights[0] > 0).sum()) == (5, 5)

    def test_the_largest_and_of_equal_ones_the_first(self):
        scores = jnp.array([[0.0, 2.0, 0.0, -1.0, 0.0], [3.0, 3.0, 3.0, 3.0, 4.0]])
        np.testing.assert_array_equal(largest(scores, 3), np.array([[1, 1, 1, 0, 0], [1, 1, 0, 0, 1]], dtype=bool))
        assert largest(scores, 5).all()


@jax.jit
def think(network, state, action, reward, before, step):
    """One step: what is sensed, and what is made of it."""
    return network.recall(network.sense(state, action, reward), before, step)


class TestRecurrence:
    @pytest.fixture
    def network(self):
        return generic(shapes_of(ReconstructiveMemory.random, SHORT, NETWORK, TINY), scale=0.5)

    STATES = jnp.array([0, 1, 2, 3, 4, 0, 1, 2, 3])
    ACTIONS = jnp.array([0, 1, 2, 0, 1, 2, 0, 1, 2])
    REWARDS = jnp.linspace(-1.0, 1.0, 9)

    def test_a_step_by_its_formula(self, network):
        """Code from [x, controls before, reads before]; the read does not see what this step writes."""
        state, thought = network.initial_state(), None
        for step in range(3):
            before = state
            state, thought = think(network, self.STATES[step], self.ACTIONS[step], self.REWARDS[step], before, step)
        x = np.concatenate([network.perception(jnp.int32(2)), [0.0, 0.0, 1.0], self.REWARDS[2][None]])
        x = np.concatenate([x, before.lower.output, before.upper.output, before.content])
        matrix = np.concatenate([network.seen, network.told, network.recalled.weight])
        code = np.tanh(x @ matrix + network.recalled.bias) @ network.code.weight + network.code.bias
        np.testing.assert_allclose(thought.code, code, rtol=1e-4)
        np.testing.assert_allclose(state.memory.rows[2], code, rtol=1e-4)
        assert (before.memory.rows[2:] == 0).all() and (state.memory.rows[3:] == 0).all()
        lower = network.lower(thought.code, before.lower)
        upper = network.upper(jnp.concatenate([thought.code, lower.output]), before.upper)
        np.testing.assert_allclose(thought.controls, np.concatenate([lower.output, upper.output]), rtol=1e-5)
        read = network.reader(thought.controls, before.memory)
        np.testing.assert_allclose(thought.read.content, read.content, rtol=1e-5)
        np.testing.assert_allclose(state.content, read.content, rtol=1e-5)
        logits = np.tanh(
            np.concatenate([thought.code, thought.controls, read.content]) @ network.policy.hidden.weight
            + network.policy.hidden.bias
        )
        logits = logits @ network.policy.out.weight + network.policy.out.bias
        np.testing.assert_allclose(network.action_logits(thought), logits, rtol=1e-4)

    def test_a_replay_is_step_after_step(self, network):
        thoughts = eqx.filter_jit(network.replay)(self.STATES, self.ACTIONS, self.REWARDS)
        state = network.initial_state()
        for step in range(9):
            state, thought = think(network, self.STATES[step], self.ACTIONS[step], self.REWARDS[step], state, step)
            for actual, expected in zip(jax.tree.leaves(thoughts), jax.tree.leaves(thought), strict=True):
                np.testing.assert_allclose(actual[step], expected, rtol=1e-4, atol=1e-5)

    def test_no_gradient_goes_into_what_is_written(self, network):
        """The LSTMs and the last read reset, a later read depends on an earlier step through the memory alone."""

        @jax.jit
        def later_read(sensed):
            state, _ = network.recall(sensed, network.initial_state(), jnp.int32(0))
            state = network.initial_state()._replace(memory=state.memory)
            _, thought = network.recall(jnp.ones(6), state, jnp.int32(1))
            return jnp.sum(jnp.square(thought.read.content))

        at = jnp.linspace(-1.0, 1.0, 6)
        assert later_read(at) != later_read(-at), "it does depend"
        np.testing.assert_array_equal(jax.jit(jax.grad(later_read))(at), np.zeros(6))

    def test_keys_and_strengths_learn_from_what_is_read(self, network):
        def reads(network):
            return jnp.sum(jnp.sin(network.replay(self.STATES, self.ACTIONS, self.REWARDS).read.content))

        gradient = eqx.filter_jit(eqx.filter_grad(reads))(network).reader.questions.weight
        keys, strengths = gradient[:, : 2 * 4], gradient[:, 2 * 4 :]
        assert (jnp.abs(keys).max(axis=0) > 0).all() and (jnp.abs(strengths).max(axis=0) > 0).all()

    def test_the_value_sends_no_gradient_to_the_policy(self, network):
        code, logits = jnp.ones(4), jnp.array([0.1, 0.2, 0.3])
        np.testing.assert_array_equal(jax.grad(lambda x: network.state_value(code, x))(logits), np.zeros(3))
        assert network.state_value(code, logits) != network.state_value(code, -logits), "though it sees it"

    def test_a_memory_of_as_many_rows_as_steps_suffices(self):
        """What the final observation writes has no row of its own, but nobody reads any more."""
        env, spec = dataclasses.replace(SHORT, horizon=8), dataclasses.replace(TINY, rows=8)
        network = generic(shapes_of(ReconstructiveMemory.random, env, NETWORK, spec))
        assert network.rows == 8
        thoughts = eqx.filter_jit(network.replay)(self.STATES, self.ACTIONS, self.REWARDS)
        memory = Memory.empty(8, 4, thoughts.code.dtype)
        for step in range(8):
            memory = memory.write(jnp.int32(step), thoughts.code[step])
        read = eqx.filter_jit(network.reader)(thoughts.controls[8], memory)
        np.testing.assert_allclose(thoughts.read.weights[8], read.weights, rtol=1e-4, atol=1e-6)


class TestDecoders:
    SHAPE = Pixels(3, 4, 2, 1)

    def test_a_picture_by_transposed_convolutions(self):
        decoder = generic(shapes_of(PictureDecoder.random, 5, self.SHAPE, NETWORK))
        code = jnp.linspace(-1.0, 1.0, 5)
        x = jax.nn.relu(code @ decoder.first.weight + decoder.first.bias).reshape(1, 3, 4, 3)
        for layer in (decoder.second, decoder.last):
            x = jax.lax.conv_transpose(x, layer.weight, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            x = x + layer.bias
            x = jax.nn.relu(x) if layer is decoder.second else x
        np.testing.assert_allclose(eqx.filter_jit(decoder)(code).reshape(3, 4, 2), x[0], rtol=1e-4, atol=1e-5)

    def test_its_error_by_hand(self):
        decoder = generic(shapes_of(PictureDecoder.random, 5, self.SHAPE, NETWORK))
        code = jnp.linspace(-0.2, 0.2, 5)
        pixels = np.random.default_rng(0).integers(0, 256, (3, 4, 2), dtype=np.uint8)
        observation = PixelObservation(jnp.asarray(pixels), jnp.array([True]))
        p, target = 1 / (1 + np.exp(-np.asarray(decoder(code)).reshape(3, 4, 2))), pixels / 255
        expected = -np.mean(target * np.log(p) + (1 - target) * np.log(1 - p))
        np.testing.assert_allclose(decoder.error(code, observation), expected, rtol=1e-4)

    def test_a_state(self):
        decoder = StateDecoder(Dense(jnp.eye(3), jnp.zeros(3)))
        error = decoder.error(jnp.array([0.0, np.log(2.0), np.log(5.0)]), jnp.int32(1))
        np.testing.assert_allclose(error, -np.log(2 / 8), rtol=1e-6)


def test_prepared_for_acting_it_is_the_same_function():
    env = dataclasses.replace(SHORT, observation=Pixels(3, 4, 2, 1))
    network = generic(shapes_of(ReconstructiveMemory.random, env, NETWORK, TINY))
    pixels = np.random.default_rng(0).integers(0, 256, (3, 4, 2), dtype=np.uint8)
    observation = PixelObservation(jnp.asarray(pixels), jnp.array([True]))
    told = (observation, jnp.int32(2), jnp.ones(()))
    prepared, plain = eqx.filter_jit(lambda n: (prepare(n).sense(*told), n.sense(*told)))(network)
    np.testing.assert_allclose(prepared, plain, rtol=1e-5)
