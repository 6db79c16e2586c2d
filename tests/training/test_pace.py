import threading

import pytest

from paircredit.training.hosted import Pace, StoppedError


def in_a_thread(work):
    found = []

    def run():
        try:
            found.append(work())
        except StoppedError as error:
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, found


def waits(thread):
    thread.join(0.2)
    return thread.is_alive()


def test_who_is_too_far_ahead_waits_for_the_slowest():
    pace = Pace(3, lead=2.0)
    pace.forward(0, 2)  # as far as it may
    thread, _ = in_a_thread(lambda: pace.forward(0, 1))
    assert waits(thread)
    pace.forward(1, 1)
    assert waits(thread)  # the third has not moved
    pace.forward(2, 1)
    thread.join(5)
    assert not thread.is_alive()


def test_nobody_waits_for_who_has_left():
    pace = Pace(2, lead=1.0)
    thread, _ = in_a_thread(lambda: pace.forward(0, 5))
    assert waits(thread)
    pace.leave(1)
    thread.join(5)
    assert not thread.is_alive()
    pace.forward(0, 100)


def test_all_begin_abreast_again():
    pace = Pace(2, lead=1.0)
    pace.leave(0)
    pace.leave(1)
    pace.begin()
    pace.forward(0, 1)
    thread, _ = in_a_thread(lambda: pace.forward(0, 1))
    assert waits(thread)
    pace.leave(1)
    thread.join(5)
    assert not thread.is_alive()


def test_who_waits_is_stopped_with_the_others():
    pace = Pace(2, lead=1.0)
    thread, found = in_a_thread(lambda: pace.forward(0, 5))
    assert waits(thread)
    pace.stop()
    thread.join(2)
    assert isinstance(found[0], StoppedError)
    with pytest.raises(StoppedError):
        pace.forward(1, 1)


def test_a_group_alone_never_waits():
    pace = Pace(1, lead=0.0)
    for _ in range(3):
        thread, found = in_a_thread(lambda: pace.forward(0, 7))
        thread.join(5)
        assert found == [None]
