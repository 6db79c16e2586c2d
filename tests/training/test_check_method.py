"""The check that users point at their own methods."""

import dataclasses

import jax
import pytest

from paircredit.envs import make_environment
from paircredit.errors import PaircreditError
from paircredit.methods import MetaPWTD, make_method
from paircredit.training import check_method


def test_a_method_with_its_defaults_passes(x64: None) -> None:
    assert check_method(make_method("meta-pwtd"), make_environment("dag", depth=4), updates=3).relative_error < 1e-6


class Wrong(MetaPWTD):
    """Learns with twice the advantages that its problem speaks of, and forgets to say so."""

    def problem(self):
        right = super().problem()

        def advantages(weights, data, fixed):
            psi = right.advantages(weights, data, fixed)
            return psi + jax.lax.stop_gradient(psi) if fixed is None else 2 * psi

        return right._replace(advantages=advantages)


def test_a_wrong_derivative_is_caught(x64: None) -> None:
    method = Wrong(inner=dataclasses.replace(make_method("meta-pwtd").inner, optimiser="sgd"))
    assert check_method(method, make_environment("dag", depth=4), updates=2).relative_error > 0.1


def test_a_method_without_weights_is_refused() -> None:
    with pytest.raises(PaircreditError, match=r"^a2c has no weights to learn"):
        check_method(make_method("a2c"), make_environment("dag", depth=4))
