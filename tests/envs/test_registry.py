"""Environments by name."""

from __future__ import annotations

import dataclasses

import pytest

from paircredit.envs import environment_config, environments, make_environment, register_environment
from paircredit.envs import registry as registry_module
from paircredit.envs.dag import Dag
from paircredit.envs.probes import Probe
from paircredit.envs.umbrella import Umbrella, UmbrellaConfig
from tests.sentences import refused


def test_every_environment_can_be_made_and_has_a_summary():
    for name, summary in environments().items():
        assert make_environment(name).spec.horizon >= 1
        assert summary and "\n" not in summary


@pytest.mark.parametrize("name, kind", [("dag", Dag), ("umbrella", Umbrella), ("probe-delay", Probe)])
def test_names(name, kind):
    assert isinstance(make_environment(name), kind)


def test_settings_reach_the_environment():
    assert make_environment("dag", depth=4).spec.horizon == 4
    assert environment_config("umbrella", length=3, mean=2.0) == UmbrellaConfig(length=3, mean=2.0)


@pytest.mark.parametrize("typed, meant", [("umbrela", "umbrella"), ("DAG", "dag"), ("probe-valve", "probe-value")])
def test_the_nearest_name_is_offered(typed, meant):
    with refused(repr(typed), f"Did you mean {meant!r}?", "umbrella", "dag", "probe-truncation"):
        make_environment(typed)


def test_an_unknown_setting_is_refused():
    with refused("setting of dag", "'dept'", "Did you mean 'depth'?", "sign_rule"):
        make_environment("dag", dept=4)


def test_a_bad_setting_is_refused():
    with refused("depth is 5"):
        make_environment("dag", depth=5)


def test_an_environment_of_ones_own(monkeypatch):
    @dataclasses.dataclass(frozen=True)
    class Short:
        length: int = 2

        def build(self):
            return UmbrellaConfig(length=self.length).build()

    monkeypatch.setattr(registry_module, "_CONFIGS", dict(registry_module._CONFIGS))
    register_environment("short", Short, "a short day")
    assert environments()["short"] == "a short day"
    assert make_environment("short", length=3).spec.horizon == 3
    with refused("'short'", "already"):
        register_environment("short", Short, "again")
