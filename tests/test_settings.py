"""Settings by name: what a hyperparameter or a setting of an environment cannot be."""

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

from paircredit.envs import make_environment
from paircredit.methods import InnerLoop, make_method, methods, presets
from paircredit.settings import about, fields_of, replace_dotted, setting, values_of, with_values
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


class Written(eqx.Module):
    """Its annotations are no texts: this file does not postpone them."""

    rate: float = setting(0.1, "Rate", "a guess", above=0, at_most=2)
    limit: float | None = setting(None, "Limit")
    sizes: tuple[int, int] = setting((3, 3), "Sizes", at_least=2)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"rate": "fast"}, "mine.rate is 'fast', but a number is needed"),
        ({"rate": 3}, "mine.rate is 3, but must be at most 2 and above 0"),
        ({"limit": "none"}, "a number is needed or None"),
        ({"sizes": 3}, "two whole numbers are needed"),
        ({"sizes": [3, 1]}, "mine.sizes is (3, 1), but must be at least 2 each"),
    ],
)
def test_settings_of_ones_own_are_looked_at_too(settings: dict, sentence: str) -> None:
    with refused(sentence):
        replace_dotted(Written(), settings, "mine")
    assert replace_dotted(Written(), {"limit": 1.0, "sizes": [4, 5]}, "mine") == Written(limit=1.0, sizes=(4, 5))


def test_a_setting_says_what_it_means_and_where_it_comes_from() -> None:
    known = {name: about(field) for name, field in fields_of(Written()).items()}
    assert [one.help for one in known.values()] == ["Rate (a guess).", "Limit.", "Sizes."]
    assert [one.range for one in known.values()] == ["be at most 2 and above 0", "", "be at least 2"]
    assert [len(jax.tree.leaves(Written(limit=limit))) for limit in (None, 1.0)] == [1, 2], "sizes are static"


def test_the_settings_of_a_rule_stand_among_those_of_its_agent() -> None:
    a2c, meta = make_method("a2c"), make_method("meta-lambda")
    assert {"lambda_", "inner", "network"} <= set(fields_of(a2c)) and "outer" not in fields_of(a2c)
    assert {"initial_lambda", "outer"} <= set(fields_of(meta)) and not {"rule", "lambda_"} & set(fields_of(meta))
    changed = with_values(a2c, lambda_=0.3, inner=InnerLoop(episodes=2))
    assert (changed.rule.lambda_, values_of(changed)["lambda_"], changed.episodes) == (0.3, 0.3, 2)
    with refused("no setting of a2c called 'outer.learning_rate'"):
        replace_dotted(a2c, {"outer.learning_rate": 0.1}, "a2c")
    with refused("no setting of a2c called 'rule.lambda_'"):
        replace_dotted(a2c, {"rule.lambda_": 0.1}, "a2c")


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
