"""Pools take turns at the cores."""

from __future__ import annotations

import threading

import pytest

from paircredit.envs.hosted import Turns, pools_at_a_time

SECONDS = 5.0


class Visitor:
    """Takes a turn in a thread of its own, and keeps it until it is told to leave."""

    def __init__(self, turns: Turns, failing: bool = False) -> None:
        self.entered, self._leave = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._visit, args=(turns, failing), daemon=True)
        self._thread.start()

    def _visit(self, turns: Turns, failing: bool) -> None:
        try:
            with turns.taken():
                self.entered.set()
                self._leave.wait(SECONDS)
                if failing:
                    raise RuntimeError
        except RuntimeError:
            pass

    def is_in(self) -> bool:
        return self.entered.wait(SECONDS)

    def waits(self) -> bool:
        return not self.entered.wait(0.1)

    def leave(self) -> None:
        self._leave.set()
        self._thread.join(SECONDS)
        assert not self._thread.is_alive()


def test_who_has_asked_first_is_first():
    turns = Turns(2)
    one, two = Visitor(turns), Visitor(turns)
    assert one.is_in() and two.is_in()
    later = []
    for _ in range(3):
        later.append(Visitor(turns))
        assert later[-1].waits()  # so that the next one asks after it
    two.leave()
    assert later[0].is_in() and later[1].waits() and later[2].waits()
    later[0].leave()
    one.leave()
    assert later[1].is_in() and later[2].is_in()
    for visitor in later[1:]:
        visitor.leave()
    again = Visitor(turns), Visitor(turns)
    assert all(visitor.is_in() for visitor in again)
    assert Visitor(turns).waits()  # as many as before may step, and not more


def test_who_fails_passes_the_turn_on():
    turns = Turns(1)
    first = Visitor(turns, failing=True)
    assert first.is_in()
    second = Visitor(turns)
    assert second.waits()
    first.leave()
    assert second.is_in()
    second.leave()


@pytest.mark.parametrize(("pools", "at_a_time"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (8, 5)])
def test_more_than_half_step_at_a_time(pools, at_a_time):
    assert pools_at_a_time(pools) == at_a_time
