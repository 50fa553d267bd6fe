"""How old a replica's state is, by who was heard of after the last epoch came."""

from __future__ import annotations

from styx.replica.age import Age

NEVER = float("-inf")


def test_while_epochs_come_it_is_as_old_as_the_last_one() -> None:
    age = Age()
    age.given(9.5, 10.0)
    assert age.as_of_s == 9.5
    age.given(8.0, 10.2)  # one that comes again
    assert age.as_of_s == 9.5
    age.given(99.0, 10.4)  # by a clock that is ahead
    assert age.as_of_s == 10.4


def test_it_was_the_newest_when_everybody_was_heard_of_last() -> None:
    age = Age()
    age.given(9.5, 10.0)
    age.look({0: 5, None: 1}, 10.1)
    age.look({0: 6, None: 1}, 10.35)  # of the coordinator nothing was heard
    assert age.as_of_s == 9.5
    age.look({0: 6, None: 2}, 10.6)
    assert age.as_of_s == 10.1  # since it looked the time before, worker 0 was heard of
    age.look({0: 7, None: 3}, 10.85)
    assert age.as_of_s == 10.6
    age.look({}, 11.1)  # not all of them are connected
    assert age.as_of_s == 10.6


def test_what_was_heard_before_the_last_epoch_does_not_count() -> None:
    age = Age()
    age.look({0: 5}, 9.0)
    age.look({0: 6}, 9.25)
    age.given(NEVER, 9.3)
    age.look({0: 6}, 9.5)
    assert age.as_of_s == NEVER
    age.look({0: 7}, 9.75)
    assert age.as_of_s == 9.5
    age.ends()
    age.look({0: 8}, 10.0)
    age.look({0: 9}, 10.25)
    assert age.as_of_s == 9.5
