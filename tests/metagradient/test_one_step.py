"""The one-step metagradient: by hand, by JAX, by finite differences, and once more in NumPy."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.estimators import pairwise_sum
from paircredit.metagradient import (
    MetaProblem,
    autodiff_one_step,
    check_metagradient,
    explicit_one_step,
    sgd,
    unrolled_metagradient,
    unrolled_objective,
)
from tests.metagradient.toy import BITING_CLIP, OPTIMISERS, first_batch, meta_problem, toy

NO_CLIP = 1e9


@pytest.fixture(scope="module", params=OPTIMISERS)
def program(request):
    """Both forms, compiled once for all limits of the gradient norm."""
    make = OPTIMISERS[request.param]

    @jax.jit
    def both_forms(clip, eta, policy, state, inner, outer):
        problem = meta_problem(make(clip_norm=clip))
        single = jax.tree.map(lambda x: x[0], (inner, outer))
        return tuple(form(problem, eta, policy, state, *single) for form in (explicit_one_step, autodiff_one_step))

    return make, both_forms


def assert_same_to_rounding(one, other):
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12 * np.abs(b).max())


@pytest.mark.parametrize(
    "clip", [pytest.param(NO_CLIP, marks=pytest.mark.nightly), BITING_CLIP], ids=["no clip", "clip"]
)
def test_by_hand_and_by_jax_and_by_finite_differences(program, clip, x64):
    make, both_forms = program
    case = toy(make(clip_norm=clip), updates=1)
    explicit, autodiff = both_forms(clip, *case[1:])
    assert_same_to_rounding(explicit, autodiff)

    checked = check_metagradient(
        lambda eta, tape: unrolled_objective(case.problem, eta, *case[2:], tape),
        case.eta,
        gradient=explicit.gradient,
        has_tape=True,
    )
    assert np.abs(checked.numeric).max() > 1e-6, "the slopes are not all 0"
    assert checked.relative_error < 1e-6


def test_the_clip_of_these_tests_bites(program, x64):
    make, both_forms = program
    free, clipped = (
        both_forms(clip, *toy(make(clip_norm=NO_CLIP), updates=1)[1:])[0].gradient["a"]
        for clip in (NO_CLIP, BITING_CLIP)
    )
    assert np.abs(free - clipped).max() > 1e-3 * np.abs(free).max()


@pytest.mark.parametrize("name", ["sgd", "adam, b1", "adam, numerator"])
def test_one_unrolled_update_is_the_one_step_rule(name, x64):
    case = toy(OPTIMISERS[name](clip_norm=BITING_CLIP), updates=1)
    single = first_batch(case)
    explicit = jax.jit(lambda *data: explicit_one_step(case.problem, *data))(*single[1:])
    unrolled = jax.jit(lambda *data: unrolled_metagradient(case.problem, *data))(*case[1:])
    assert_same_to_rounding((explicit.gradient, explicit.loss), unrolled)


@pytest.mark.parametrize("name", ["sgd", "adam", "adam, numerator"])
def test_no_clip_norm_is_a_clip_norm_that_never_bites(name, x64):
    gradients = []
    for clip in (None, NO_CLIP):
        case = first_batch(toy(OPTIMISERS[name](clip_norm=clip), updates=1))
        gradients.append(explicit_one_step(case.problem, *case[1:]).gradient)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12), *gradients)


def test_credit_is_the_derivative_of_the_loss_by_the_advantages(x64):
    """Moving one advantage by h moves the outer loss by credit·h."""
    case = toy(OPTIMISERS["adam"](), updates=1)
    single = first_batch(case)
    credit = explicit_one_step(single.problem, *single[1:]).credit

    def loss(nudge):
        nudged = case.problem._replace(advantages=lambda e, d, f: case.problem.advantages(e, d, f) + nudge)
        return unrolled_objective(nudged, *case[1:])[0]

    assert check_metagradient(loss, jnp.zeros(6), gradient=credit).relative_error < 1e-6


class TestTabularByHand:
    """SGD, a softmax table and pair weights: the whole chain rule in NumPy, from the design's formula.

    v = ∇J_outer(θ'), u = −α v, c_t = −⟨∇ log π(A_t|S_t), u⟩/N, ∂J/∂w_tk = c_t R_{k+1}.
    """

    learning_rate = 0.3
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(5, 3))
    states, actions = np.array([0, 2, 2, 4]), np.array([1, 0, 2, 1])
    rewards, weights = rng.normal(size=4), rng.uniform(size=(4, 4))
    later_states, later_actions = np.array([2, 0, 4]), np.array([2, 1, 0])
    judgements = rng.normal(size=3)

    @staticmethod
    def score(logits, state, action):
        """∇_θ log π(a|s) of a table of logits."""
        result = np.zeros_like(logits)
        result[state] = -np.exp(logits[state]) / np.exp(logits[state]).sum()
        result[state, action] += 1
        return result

    def by_hand(self):
        n, m = len(self.states), len(self.later_states)
        advantages = np.triu(self.weights) @ self.rewards
        scores = [self.score(self.logits, s, a) for s, a in zip(self.states, self.actions, strict=True)]
        updated = self.logits + self.learning_rate * sum(p * g for p, g in zip(advantages, scores, strict=True)) / n
        evaluated = zip(self.judgements, self.later_states, self.later_actions, strict=True)
        v = -sum(j * self.score(updated, s, a) for j, s, a in evaluated) / m
        u = -self.learning_rate * v
        credit = np.array([-np.sum(g * u) / n for g in scores])
        return credit, np.triu(np.outer(credit, self.rewards))

    @pytest.mark.parametrize("form", [explicit_one_step, autodiff_one_step])
    def test(self, form, x64):
        def log_probabilities(logits, states, actions):
            return jax.nn.log_softmax(logits[states])[jnp.arange(len(states)), actions]

        problem = MetaProblem(
            advantages=lambda w, data, detached: pairwise_sum(w, data["rewards"]),
            inner_loss=lambda θ, data, psi: -jnp.mean(psi * log_probabilities(θ, data["s"], data["a"])),
            optimiser=sgd(self.learning_rate),
            outer_loss=lambda θ, data: -jnp.mean(data["psi"] * log_probabilities(θ, data["s"], data["a"])),
        )
        inner = {"rewards": self.rewards, "s": self.states, "a": self.actions}
        outer = {"psi": self.judgements, "s": self.later_states, "a": self.later_actions}
        step = form(problem, *jax.tree.map(jnp.asarray, (self.weights, self.logits, (), inner, outer)))
        credit, gradient = self.by_hand()
        np.testing.assert_allclose(step.credit, credit, rtol=1e-10)
        np.testing.assert_allclose(step.gradient, gradient, rtol=1e-10, atol=1e-16)


@pytest.mark.parametrize("name", OPTIMISERS)
def test_unvisited_states_and_zero_advantages_under_a_fresh_optimiser_give_no_nan(name):
    """State 3 of the table is never visited; without rewards all advantages, and so all gradients, are exactly 0."""
    optimiser = OPTIMISERS[name](clip_norm=1.0)

    def loss(logits, data, psi):
        log_probabilities = jax.nn.log_softmax(logits[data["states"]])
        return -jnp.mean(psi * log_probabilities[jnp.arange(3), data["actions"]])

    problem = MetaProblem(
        advantages=lambda w, data, detached: pairwise_sum(w, data["rewards"]),
        inner_loss=loss,
        optimiser=optimiser,
        outer_loss=lambda logits, data: loss(logits, data, data["rewards"]),
    )
    logits, weights = jnp.zeros((4, 2)), jnp.full((3, 3), 0.5)
    data = {"states": jnp.array([0, 1, 2]), "actions": jnp.array([0, 1, 0])}

    @jax.jit
    def everything(rewards):
        single = data | {"rewards": rewards}
        double = jax.tree.map(lambda x: jnp.stack([x, x]), single)
        arguments = (problem, weights, logits, optimiser.init(logits))
        return (
            explicit_one_step(*arguments, single, single),
            unrolled_metagradient(*arguments, double, double),
        )

    for rewards in (jnp.array([1.0, 0.0, -2.0]), jnp.zeros(3)):
        for x in jax.tree.leaves(everything(rewards)):
            assert np.isfinite(x).all()
