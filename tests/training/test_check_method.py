"""The check that users point at their own methods."""

import jax
import pytest

from paircredit.envs import make_environment
from paircredit.errors import PaircreditError
from paircredit.methods import ActorCritic, InnerLoop, OuterLoop, make_method
from paircredit.methods.meta_pwtd import MetaPWTD
from paircredit.training import check_method
from tests.sentences import refused


def test_a_method_with_its_defaults_passes(x64: None) -> None:
    assert check_method(make_method("meta-pwtd"), make_environment("dag", depth=4), updates=3).relative_error < 1e-6


INNER = InnerLoop(optimiser="sgd")


class Wrong(ActorCritic):
    """Its problem speaks of the right advantages, but half of their derivative is gone."""

    def problem(self):
        right = ActorCritic.problem(self)

        def advantages(weights, data, fixed):
            psi = right.advantages(weights, data, fixed)
            return (psi + jax.lax.stop_gradient(psi)) / 2 if fixed is None else psi

        return right._replace(advantages=advantages)


class Twice(ActorCritic):
    """Its problem speaks of twice the advantages that it learns with."""

    def problem(self):
        right = ActorCritic.problem(self)
        return right._replace(advantages=lambda *arguments: 2 * right.advantages(*arguments))


def test_a_wrong_derivative_is_caught(x64: None) -> None:
    method = Wrong(MetaPWTD(), INNER, OuterLoop())
    assert check_method(method, make_environment("dag", depth=4), updates=2).relative_error > 0.1


@pytest.mark.parametrize("optimiser", ["sgd", "adam"])
def test_another_step_than_the_problem_says_is_refused(x64: None, optimiser: str) -> None:
    method = Twice(MetaPWTD(), InnerLoop(optimiser=optimiser), OuterLoop())
    with refused("meta-pwtd learns otherwise than its problem says", "after inner update 1"):
        check_method(method, make_environment("dag", depth=4), updates=2)


def test_a_method_without_weights_is_refused() -> None:
    with pytest.raises(PaircreditError, match=r"^a2c has no weights to learn"):
        check_method(make_method("a2c"), make_environment("dag", depth=4))
