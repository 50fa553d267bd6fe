"""An event loop that is asked whether it turns."""

from __future__ import annotations

from collections.abc import Callable

from styx.watchdog.held_loop import HeldLoop


def test_a_loop_that_turns_is_not_held_up() -> None:
    asked: list[Callable[[], None]] = []
    loop = HeldLoop(asked.append)
    for _ in range(5):
        assert loop.look(1.0, False) == 0
        asked.pop()()
    assert not asked


def test_seconds_without_an_answer_are_counted_outside_of_passes() -> None:
    asked: list[Callable[[], None]] = []
    loop = HeldLoop(asked.append)
    told = [loop.look(0.5, within) for within in (False, False, False, True, False, False)]
    assert told == [0, 0.5, 1.0, 0, 0.5, 1.0]
    [answer] = asked
    answer()
    assert loop.look(0.5, False) == 0
    assert len(asked) == 2


def test_a_loop_that_is_closed_is_let_be() -> None:
    def closed(callback: Callable[[], None]) -> None:
        raise RuntimeError("Event loop is closed")

    loop = HeldLoop(closed)
    assert [loop.look(1.0, False) for _ in range(3)] == [0, 0, 0]
