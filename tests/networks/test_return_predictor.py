"""The additive cell and the return predictor: what a step adds is what the prediction changes by."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.envs.protocol import Discrete, EnvSpec, Pixels
from paircredit.networks import NetworkSpec
from paircredit.networks.additive_cell import AdditiveCell, additive_scan
from paircredit.networks.layers import Dense
from paircredit.networks.perception import Perception, StateEmbedding, of_change
from paircredit.networks.return_predictor import ReturnPredictor
from paircredit.types import PixelObservation
from tests.networks.test_layers import SHAPE, SPEC, generic, observations
from tests.sentences import refused

T, D, C = 7, 5, 4
CAMERA = EnvSpec("camera", num_actions=3, observation=SHAPE, horizon=T)
STATES = EnvSpec("states", num_actions=3, observation=Discrete(6), horizon=T)
ALL = jnp.ones((T,), dtype=bool)


def numbers(*shape: int, seed: int = 0) -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), dtype=float)


def plain_scan(candidates, weight, bias, start):
    """The recurrence as one would write it, differentiated by JAX."""

    def step(memory, candidate):
        memory = memory + jax.nn.sigmoid(memory @ weight + bias) * candidate
        return memory, memory

    return jax.lax.scan(step, start, candidates)[1]


class TestCell:
    def test_by_hand(self):
        """One cell, gate weight ln 3, bias 0: with memory c a part 3^c / (1 + 3^c) of the input comes in."""
        cell = AdditiveCell(Dense(jnp.ones((1, 1)), jnp.zeros(1)), Dense(jnp.full((1, 1), np.log(3)), jnp.zeros(1)))
        inputs = jnp.arctanh(jnp.array([[0.8], [0.4], [-0.6]]))
        start = jnp.array([0.6])
        first = 0.6 + 3**0.6 / (1 + 3**0.6) * 0.8
        second = first + 3**first / (1 + 3**first) * 0.4
        third = second - 3**second / (1 + 3**second) * 0.6
        memories = cell(inputs, jnp.ones(3, dtype=bool), start)
        np.testing.assert_allclose(memories[:, 0], [first, second, third], rtol=1e-6)
        np.testing.assert_allclose(cell(inputs[:1], jnp.ones(1, dtype=bool), jnp.zeros(1)), [[0.4]], rtol=1e-6)

    def test_the_input_sees_the_step_alone_and_the_gate_the_past_alone(self, x64):
        """Another x_t changes c_t in proportion to tanh(x_t W + b): the gate at t, their factor, is the same."""
        cell = generic(AdditiveCell.random, D, C)
        steps, other = numbers(T, D), numbers(T, D, seed=1)
        run = jax.jit(lambda x: cell(x, ALL, jnp.zeros(C)))
        at = 3
        memories, changed = run(steps), run(steps.at[at].set(other[at]))
        np.testing.assert_array_equal(memories[:at], changed[:at])
        before = memories[at - 1]
        z, z_other = (jnp.tanh(x[at] @ cell.candidate.weight + cell.candidate.bias) for x in (steps, other))
        gate = (memories[at] - before) / z
        np.testing.assert_allclose((changed[at] - before) / z_other, gate, rtol=1e-10)
        np.testing.assert_allclose(gate, jax.nn.sigmoid(before @ cell.gate.weight + cell.gate.bias), rtol=1e-10)
        # The step after sees another past: its gate differs, its input does not.
        z_next = jnp.tanh(steps[at + 1] @ cell.candidate.weight + cell.candidate.bias)
        gates = [(m[at + 1] - m[at]) / z_next for m in (memories, changed)]
        assert (np.abs(gates[0] - gates[1]) > 1e-6).all()
        np.testing.assert_allclose(gates[1], jax.nn.sigmoid(changed[at] @ cell.gate.weight + cell.gate.bias), rtol=1e-9)

    def test_padding_adds_nothing_and_is_not_read(self):
        cell = generic(AdditiveCell.random, D, C)
        valid = jnp.arange(T) < 4
        steps = jnp.where(valid[:, None], numbers(T, D), np.nan)
        memories = eqx.filter_jit(cell)(steps, valid, jnp.zeros(C))
        np.testing.assert_array_equal(memories[4:], jnp.broadcast_to(memories[3], (3, C)))
        np.testing.assert_allclose(memories[:4], cell(steps[:4], valid[:4], jnp.zeros(C)), rtol=1e-6)

    @pytest.mark.parametrize("start, centre, gate_deviation", [("closed", -3.0, 0.1), ("xavier", 0.0, 1 / 20)])
    def test_starts(self, start, centre, gate_deviation):
        cell = AdditiveCell.random(jax.random.key(0), 100, 400, start)
        n = 400
        for array, mean, deviation in (
            (cell.gate.weight, 0.0, gate_deviation),
            (cell.gate.bias, centre, 1.0),
            (cell.candidate.weight, 0.0, 0.1 if start == "closed" else (2 / 500) ** 0.5),
            (cell.candidate.bias, 0.0, 1.0),
        ):
            assert abs(array.mean() - mean) < 5 * deviation / np.sqrt(n)
            assert abs(array.std() - deviation) < 5 * deviation / np.sqrt(2 * n)
        assert cell.gate.weight.shape == (400, 400) and cell.candidate.weight.shape == (100, 400)


class TestScan:
    ARGUMENTS = (T, C), (C, C), (C,), (C,)

    def test_values_and_derivatives_are_those_of_the_plain_recurrence(self, x64):
        arguments = [numbers(*shape, seed=seed) for seed, shape in enumerate(self.ARGUMENTS)]
        cotangent = numbers(T, C, seed=9)
        ours, pull = jax.vjp(jax.jit(additive_scan), *arguments)
        theirs, plain_pull = jax.vjp(jax.jit(plain_scan), *arguments)
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
        for a, b in zip(pull(cotangent), plain_pull(cotangent), strict=True):
            assert np.abs(b).min() > 1e-6
            np.testing.assert_allclose(a, b, rtol=1e-9)

    def test_members_and_episodes_side_by_side(self, x64):
        """Episodes of a member share its gate; members do not."""
        z, weight, bias, start = numbers(2, 3, T, C), numbers(2, C, C), numbers(2, C), numbers(2, C)
        cotangent = numbers(2, 3, T, C, seed=9)

        def slopes(scan):
            def total(*arguments):
                over_episodes = jax.vmap(scan, in_axes=(0, None, None, None))
                return jnp.sum(cotangent * jax.vmap(over_episodes)(*arguments))

            return jax.jit(jax.grad(total, argnums=(0, 1, 2, 3)))(z, weight, bias, start)

        for a, b in zip(slopes(additive_scan), slopes(plain_scan), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9)


class TestChanges:
    def test_a_delta_frame_goes_through_the_network_as_a_difference(self, x64):
        """Layer by layer, on pixels between −1 and 1 and flags of −1, 0 or 1."""
        perception = generic(Perception.random, SHAPE, SPEC)
        seen, before = observations(seed=1), observations(seed=7)
        difference = (np.asarray(seen.pixels, dtype=float) - np.asarray(before.pixels, dtype=float)) / 255
        x = difference.reshape(SHAPE.height, -1)
        for conv in (perception.first, perception.second):
            x = np.maximum(conv(jnp.asarray(x)), 0)
        x = np.maximum(perception.picture(jnp.asarray(x.reshape(-1))), 0)
        flags = np.asarray(seen.flags, dtype=float) - np.asarray(before.flags, dtype=float)
        assert difference.min() < 0 < difference.max() and flags.any()
        x = np.maximum(perception.joined(jnp.asarray(x)) + flags @ perception.flags, 0)
        x = np.maximum(perception.last(jnp.asarray(x)), 0)
        found = jax.jit(lambda p: of_change(p, seen, before))(perception)
        assert found.any()
        np.testing.assert_allclose(found, x, rtol=1e-10)

    def test_from_a_black_picture_the_change_is_the_picture(self):
        perception, seen = generic(Perception.random, SHAPE, SPEC), observations()
        black = PixelObservation(jnp.zeros_like(seen.pixels), jnp.zeros_like(seen.flags))
        change, whole = jax.jit(lambda p: (of_change(p, seen, black), p(seen)))(perception)
        np.testing.assert_array_equal(change, whole)

    def test_a_change_of_state_is_a_difference_of_rows(self):
        embedding = generic(StateEmbedding.random, 6, NetworkSpec(trunk=(4, 4)))
        one, two = jnp.asarray(1), jnp.asarray(2)
        expected = np.maximum(
            (embedding.table[1] - embedding.table[2]) @ embedding.last.weight + embedding.last.bias, 0
        )
        np.testing.assert_allclose(of_change(embedding, one, two), expected, rtol=1e-5)
        np.testing.assert_allclose(of_change(embedding, two, two), np.maximum(embedding.last.bias, 0), rtol=1e-6)


def predictor(spec: EnvSpec, **settings) -> ReturnPredictor:
    return generic(lambda key: ReturnPredictor.random(key, spec, SPEC, width=6, cells=C, **settings))


def episode(spec: EnvSpec, seed: int = 0):
    rng = np.random.default_rng(seed)
    seen = observations(T, seed=seed) if isinstance(spec.observation, Pixels) else jnp.asarray(rng.integers(0, 6, T))
    return seen, jnp.asarray(rng.integers(0, 3, T))


both_kinds = pytest.mark.parametrize("spec", [CAMERA, STATES], ids=["pictures", "states"])


class TestPredictor:
    @both_kinds
    def test_a_difference_of_predictions_is_what_the_step_added(self, spec, x64):
        """g_t − g_{t−1} = w_o · (i_t z_t), the first with the bias."""
        model, (seen, actions) = predictor(spec), episode(spec)
        predictions = jax.jit(lambda m: m(seen, actions, ALL))(model)
        steps = jax.jit(lambda m: m.steps(seen, actions))(model)
        z = np.tanh(steps @ model.cell.candidate.weight + model.cell.candidate.bias)
        memory, added = np.zeros(C), []
        for t in range(T):
            gate = 1 / (1 + np.exp(-(memory @ model.cell.gate.weight + model.cell.gate.bias)))
            added.append(float((gate * z[t]) @ model.head.weight[:, 0]))
            memory = memory + gate * z[t]
        differences = np.diff(np.asarray(predictions), prepend=np.asarray(model.head.bias))
        assert np.abs(added).min() > 1e-6
        np.testing.assert_allclose(differences, added, rtol=1e-7, atol=1e-12)

    @both_kinds
    def test_it_sees_frame_change_and_action(self, spec):
        """Frame and change have networks of their own; the first change is none, or all of the frame."""
        model, (seen, actions) = predictor(spec), episode(spec)
        at = jax.tree.map(lambda x: x[3], seen)
        before = jax.tree.map(lambda x: x[2], seen)
        features = jnp.concatenate([model.frame(at), of_change(model.change, at, before)])
        expected = jax.nn.relu(model.joined(features) + model.actions[actions[3]])
        assert expected.any()
        steps = eqx.filter_jit(model.steps)(seen, actions)
        np.testing.assert_allclose(steps[3], expected, rtol=1e-5, atol=1e-6)
        first = jax.tree.map(lambda x: x[0], seen)
        for choice, change in (("zero", of_change(model.change, first, first)), ("whole", model.change(first))):
            other = predictor(spec, first_change=choice)
            features = jnp.concatenate([model.frame(first), change])
            expected = jax.nn.relu(model.joined(features) + model.actions[actions[0]])
            found = eqx.filter_jit(other.steps)(seen, actions)
            np.testing.assert_allclose(found[0], expected, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(found[1:], steps[1:], rtol=1e-6)

    def test_a_prediction_does_not_see_the_future(self):
        model, (seen, actions) = predictor(STATES), episode(STATES)
        predict = jax.jit(lambda *given: model(*given, ALL))
        other = predict((seen + 1).at[:4].set(seen[:4]) % 6, (2 - actions).at[:4].set(actions[:4]))
        found = predict(seen, actions)
        np.testing.assert_array_equal(found[:4], other[:4])
        assert (found[4:] != other[4:]).all()

    def test_after_the_end_the_last_prediction_stands(self):
        model, (seen, actions) = predictor(STATES), episode(STATES)
        predictions = eqx.filter_jit(model)(seen, actions, jnp.arange(T) < 4)
        np.testing.assert_array_equal(predictions[3:], jnp.broadcast_to(predictions[3], (T - 3,)))
        assert predictions[2] != predictions[3]

    def test_the_network_of_the_paper_by_its_formula(self):
        spec = EnvSpec("key-to-door", 4, Pixels(7, 11, 3, 1), 120)
        model = jax.eval_shape(lambda key: ReturnPredictor.random(key, spec, NetworkSpec()), jax.random.key(0))
        dense, cell, head = (2 * 256 + 4) * 512 + 512, (512 * 64 + 64) + (64 * 64 + 64), 64 + 1
        assert sum(leaf.size for leaf in jax.tree.leaves(model)) == 2 * 1_661_664 + dense + cell + head

    def test_segments_are_the_same_function_with_gradients_cut_at_their_borders(self, x64):
        """Seven steps in segments of three: the last prediction is then differentiated in the last step alone."""
        model, (seen, actions) = predictor(STATES), episode(STATES)

        def last(model, chunk):
            return model(seen, actions, ALL, chunk)[-1]

        whole = jax.jit(lambda m: m(seen, actions, ALL))(model)
        for chunk in (1, 3, 7, 100):
            np.testing.assert_allclose(jax.jit(lambda m, c=chunk: m(seen, actions, ALL, c))(model), whole, rtol=1e-10)
        gradient = {chunk: jax.jit(jax.grad(lambda m, c=chunk: last(m, c)))(model) for chunk in (None, 3, 7)}
        for a, b in zip(jax.tree.leaves(gradient[None]), jax.tree.leaves(gradient[7]), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-14)
        moved = [np.abs(gradient[c].frame.table).sum(axis=1) > 0 for c in (None, 3)]
        assert set(np.flatnonzero(moved[1])) <= {int(seen[-1])} < set(np.flatnonzero(moved[0]))

    @pytest.mark.usefixtures("users_view")
    def test_refusals(self):
        with refused("'close'", "Did you mean 'closed'?"):
            AdditiveCell.random(jax.random.key(0), 2, 2, "close")
        with refused("'zeros'", "Did you mean 'zero'?"):
            ReturnPredictor.random(jax.random.key(0), STATES, SPEC, first_change="zeros")
