"""What cannot be trained is refused before it starts, and what went wrong is noticed."""

import dataclasses

import jax.numpy as jnp
import pytest

from paircredit.envs import make_environment
from paircredit.errors import PaircreditError
from paircredit.methods import InnerLoop, make_method
from paircredit.training import Plan, train
from paircredit.weights import SigmoidTable

ENV = make_environment("probe-action")


def test_a_chunk_without_updates_is_refused() -> None:
    with pytest.raises(PaircreditError, match="chunk of 0 updates"):
        train([make_method("a2c")], [ENV], [0], Plan(updates=0), 5)


class InSegments:
    """An environment whose rollouts do not hold whole episodes."""

    spec = dataclasses.replace(ENV.spec, name="segments", whole_episodes=False)


@pytest.mark.parametrize("name", ["h-pwr", "meta-pwr"])
def test_a_method_that_needs_whole_episodes_is_refused_with_the_reason(name: str) -> None:
    reason = rf"^{name} needs whole episodes, but rollouts of segments are segments.*after a cut"
    with pytest.raises(PaircreditError, match=reason):
        train([make_method(name)], [InSegments()], [0], Plan(updates=1), 1)


def test_an_unknown_protocol_is_refused(users_view: None) -> None:
    with pytest.raises(PaircreditError, match="Did you mean 'online'"):
        train([make_method("a2c")], [ENV], [0], Plan("onlin", 1), 1)


def test_an_unknown_optimiser_is_refused(users_view: None) -> None:
    method = make_method("a2c", inner=InnerLoop(optimiser="adm"))
    with pytest.raises(PaircreditError, match="Did you mean 'adam'"):
        train([method], [ENV], [0], Plan(updates=1), 1)


def test_weights_need_one_entry_per_member(users_view: None) -> None:
    weights = SigmoidTable(jnp.zeros((3, 4, 4)))
    with pytest.raises(PaircreditError, match="leading axis of 1"):
        train([make_method("meta-pwr")], [ENV], [0], Plan(updates=1), 1, weights=weights)


def test_a_lost_learner_is_noticed_even_when_its_returns_look_fine() -> None:
    method = make_method("a2c", "probe")
    lost = dataclasses.replace(method, inner=dataclasses.replace(method.inner, learning_rate=float("nan")))
    with pytest.raises(PaircreditError, match="seed 7 is NaN or infinite after 2 updates"):
        train([method, lost], [ENV] * 2, [6, 7], Plan(updates=2), 2)
