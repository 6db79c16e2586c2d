"""Settings by name: what a hyperparameter or a setting of an environment cannot be."""

import jax.numpy as jnp
import pytest

from paircredit.envs import make_environment
from paircredit.methods import make_method, methods, presets
from paircredit.settings import replace_dotted
from tests.sentences import refused

IMPOSSIBLE = [
    ({"inner.learning_rate": "fast"}, "a2c.inner.learning_rate is 'fast', but a number is needed"),
    ({"inner.learning_rate": True}, "a number is needed"),
    ({"inner.learning_rate": -0.1}, "learning_rate is -0.1, but must be at least 0"),
    ({"inner.learning_rate": float("nan")}, "learning_rate is nan; a finite number is needed"),
    ({"inner.episodes": 2.5}, "episodes is 2.5, but a whole number is needed"),
    ({"inner.episodes": 0}, "episodes is 0, but must be at least 1"),
    ({"inner.discount": 2.0}, "discount is 2.0, but must lie between 0 and 1"),
    ({"inner.discount": -1}, "discount is -1"),
    ({"inner.clip_norm": 0.0}, "clip_norm is 0.0, but must be above 0"),
    ({"inner.clip_norm": "none"}, "a number is needed or None"),
    ({"inner.second_moment_decay": 1.0}, "must be at least 0 and less than 1"),
    ({"inner.standardise": "yes"}, "true or false is needed"),
    ({"lambda_": -0.1}, "a2c.lambda_ is -0.1, but must lie between 0 and 1"),
    ({"network.filters": [3]}, "two whole numbers are needed"),
    ({"network.filters": 8}, "two whole numbers are needed"),
    ({"network.trunk": (0, 8)}, "must be at least 1 each"),
    ({"network.pair_width": -3}, "pair_width is -3, but must be at least 1"),
    ({"inner": 3}, "a2c.inner is a group of settings, so it cannot be 3"),
    ({"inner.": 3}, "no setting of a2c.inner called ''"),
    ({"lambda_.x": 3}, "no setting of a2c called 'lambda_.x'"),
]


@pytest.mark.parametrize(("settings", "sentence"), IMPOSSIBLE, ids=[str(settings) for settings, _ in IMPOSSIBLE])
def test_what_a_hyperparameter_cannot_be_is_refused(users_view, settings, sentence) -> None:
    with refused(sentence):
        replace_dotted(make_method("a2c"), settings, "a2c")


def test_fields_by_keyword_are_looked_at_too(users_view) -> None:
    with refused("a2c.lambda_ is 1.5, but must lie between 0 and 1"):
        make_method("a2c", lambda_=1.5)
    with refused("rgm.transformer.heads is 0, but must be at least 1"):
        replace_dotted(make_method("rgm"), {"transformer.heads": 0}, "rgm")


def test_arrays_and_the_ends_of_ranges_are_let_through(users_view) -> None:
    settings = {"lambda_": 1, "inner.discount": 0.0, "inner.clip_norm": None, "inner.learning_rate": jnp.float32(0.1)}
    assert replace_dotted(make_method("a2c"), settings, "a2c").rule.lambda_ == 1


@pytest.mark.parametrize("method", methods())
def test_what_presets_set_is_possible(method: str) -> None:
    for preset in presets():
        make_method(method, preset, "dag")


@pytest.mark.parametrize("value", ["five", None, True, [5.0]])
def test_a_mean_that_is_no_number_is_refused(value: object) -> None:
    with refused("key-to-door.mean is", "a number is needed"):
        make_environment("key-to-door", mean=value)


def test_half_a_step_is_refused() -> None:
    with refused("key-to-door.apple_steps is 2.5, but a whole number is needed"):
        make_environment("key-to-door", apple_steps=2.5)
