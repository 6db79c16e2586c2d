"""The one exception for users."""

from __future__ import annotations

from paircredit.errors import PaircreditError, unknown_name


def test_it_can_be_caught_as_a_value_error():
    assert issubclass(PaircreditError, ValueError)


def test_an_unknown_name_is_answered_with_the_nearest_and_with_all():
    message = str(unknown_name("fruit", "Aple", ["pear", "apple"]))
    assert message == "There is no fruit called 'Aple'. Did you mean 'apple'? Known: apple, pear."


def test_a_name_like_no_other_gets_no_offer():
    assert "Did you mean" not in str(unknown_name("fruit", "zzzz", ["pear", "apple"]))


def test_large_families_are_folded():
    apples = [f"apple/{i}" for i in range(11)]
    message = str(unknown_name("fruit", "apple/12", ["pear/a", "pear/b", *apples]))
    assert "Did you mean 'apple/" in message and message.endswith("Known: apple/…, pear/a, pear/b.")


def test_a_name_may_be_no_text():
    """Settings come from JSON, too."""
    assert "called 3." in str(unknown_name("optimiser", 3, ["adam"]))
