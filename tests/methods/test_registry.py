"""Methods by name."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

from paircredit.envs import make_environment
from paircredit.methods import ActorCritic, InnerLoop, OuterLoop, make_method, methods, presets, register_method
from paircredit.methods import registry as registry_module
from paircredit.methods.a2c import A2C
from paircredit.methods.a2c_rr import A2CRR
from paircredit.methods.hpwr import HPWR
from paircredit.methods.meta_lambda import MetaLambda
from paircredit.methods.meta_pwr import MetaPWR
from paircredit.methods.meta_pwtd import MetaPWTD
from paircredit.methods.registry import method_name
from paircredit.methods.rgm import RGM
from paircredit.methods.synthetic_returns import SyntheticReturns
from paircredit.methods.tvt import TVT
from tests.sentences import refused


@pytest.mark.parametrize(
    "name, kind",
    [
        ("a2c", A2C),
        ("a2c-rr", A2CRR),
        ("h-pwr", HPWR),
        ("meta-lambda", MetaLambda),
        ("meta-pwr", MetaPWR),
        ("meta-pwtd", MetaPWTD),
        ("rgm", RGM),
        ("synthetic-returns", SyntheticReturns),
        ("tvt", TVT),
    ],
)
def test_names(name, kind):
    method = make_method(name)
    assert isinstance(method if kind is TVT else method.rule, kind)
    assert methods()[name] and "\n" not in methods()[name]
    assert method_name(make_method(name)) == name


def test_a_method_that_nobody_registered_is_called_by_its_class_or_by_that_of_its_rule():
    class Mine(A2C):
        pass

    class Own(TVT):
        pass

    assert method_name(ActorCritic(Mine())) == "Mine" and method_name(Own()) == "Own"


def test_settings_replace_fields():
    assert make_method("a2c", lambda_=0.9).rule.lambda_ == 0.9
    assert make_method("meta-pwr", inner=InnerLoop(episodes=3)).episodes == 3


def test_the_probe_preset():
    inner = make_method("a2c", preset="probe").inner
    assert (inner.learning_rate, inner.discount, inner.entropy_cost) == (0.1, 0.9, 0.0)
    assert set(presets()) == {"default", "paper", "small", "probe"}
    assert make_method("a2c").inner == InnerLoop()


@pytest.mark.parametrize("typed, meant", [("metapwr", "meta-pwr"), ("A2C", "a2c"), ("meta-pwdt", "meta-pwtd")])
def test_the_nearest_name_is_offered(typed, meant):
    with refused(repr(typed), f"Did you mean {meant!r}?", "h-pwr"):
        make_method(typed)


def test_an_unknown_preset_is_refused():
    with refused("preset", "'papper'", "Did you mean 'paper'?"):
        make_method("a2c", preset="papper")


def test_an_unknown_setting_is_refused():
    with refused("setting of a2c", "'lambda'", "Did you mean 'lambda_'?"):
        make_method("a2c", **{"lambda": 0.9})


def test_a_method_of_ones_own(monkeypatch):
    monkeypatch.setattr(registry_module, "_METHODS", dict(registry_module._METHODS))
    register_method("mine", ActorCritic(A2C(lambda_=0.3)), "the same again")
    mine = make_method("mine", inner=InnerLoop(episodes=3))
    assert (mine.rule, mine.episodes, methods()["mine"]) == (A2C(lambda_=0.3), 3, "the same again")
    with refused("'mine'", "already"):
        register_method("mine", ActorCritic(A2C()), "and again")


def test_an_outer_loop_with_nothing_to_learn_is_refused():
    with refused("A2C has no weights to learn", "outer loop"):
        ActorCritic(A2C(), outer=OuterLoop()).init(jax.random.key(0), make_environment("dag"))


def test_a_fixed_value_that_nobody_looks_at_is_refused():
    with refused("HPWR has no value function of the regular return", "fixed_value"):
        make_method("h-pwr", fixed_value=jnp.zeros(10)).init(jax.random.key(0), make_environment("dag", depth=4))


def test_weights_without_an_outer_loop_stay_what_they_are():
    method = ActorCritic(MetaPWR())
    learner = method.init(jax.random.key(0), make_environment("dag"))
    assert not method.learns_weights and learner.weights.state == () and learner.weights.parameters.eta.any()


@pytest.mark.parametrize("env", ["minatr/breakout", "key-to-dor", "bsuite/catc", "", 3])
@pytest.mark.usefixtures("users_view")
def test_an_environment_that_nobody_knows_has_no_settings(env):
    with refused("There is no environment called"):
        make_method("a2c", "default", env)
