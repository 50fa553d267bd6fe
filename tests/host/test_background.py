"""Blocking work beside the loop: its ends, its retries, and what is dropped."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from styx.host import background
from styx.host.background import Background, on_running_loop
from styx.host.ports import ATTEMPTS_MAX


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "FIRST_PAUSE_SECONDS", 0.0)


class Told:
    """What came back, in order; the loop is whoever calls."""

    def __init__(self, threads_max: int = 1) -> None:
        self.ends: list[Any] = []
        self.background = Background(lambda what, error: self.ends.append((what, error)), self._call, threads_max)

    def _call(self, callback: Callable[..., None], *arguments: Any) -> None:
        callback(*arguments)

    def submit(self, run: Callable[[], object]) -> None:
        self.background.submit("work", run, self.ends.append, self.ends.append)


def failing(times: int, error: Exception) -> Callable[[], int]:
    tried = [0]

    def run() -> int:
        tried[0] += 1
        if tried[0] <= times:
            raise error
        return tried[0]

    return run


def test_one_thread_keeps_the_order() -> None:
    told = Told()
    for number in range(10):
        told.submit(lambda number=number: number)  # type: ignore[misc]
    told.background.finish()
    assert told.ends == list(range(10))


def test_a_store_out_of_reach_is_tried_again_so_many_times() -> None:
    told, away = Told(), OSError("away")
    told.submit(failing(ATTEMPTS_MAX - 1, away))
    told.submit(failing(ATTEMPTS_MAX, away))
    told.background.finish()
    assert told.ends == [ATTEMPTS_MAX, away]


def test_what_no_retry_mends_is_told_at_once() -> None:
    told, wrong = Told(), ValueError("wrong")
    told.submit(failing(1, wrong))
    told.background.finish()
    assert told.ends == [("work", wrong)]


def test_so_many_pieces_at_once() -> None:
    told, together = Told(threads_max=2), threading.Barrier(2)
    for _ in range(2):
        told.submit(together.wait)
    told.background.finish()
    assert sorted(told.ends) == [0, 1]


def test_nobody_hears_of_what_ends_after_a_crash() -> None:
    told, begun, go_on = Told(), threading.Event(), threading.Event()

    def wait() -> bool:
        begun.set()
        return go_on.wait()

    told.submit(wait)
    told.submit(lambda: pytest.fail("it was dropped"))
    begun.wait()
    crash = threading.Thread(target=told.background.crash)
    crash.start()
    told.background._abandoned.wait()
    go_on.set()
    crash.join()
    told.submit(lambda: pytest.fail("it is not taken"))
    assert told.ends == []


@pytest.mark.anyio
async def test_work_that_is_awaited_is_tried_once() -> None:
    work = Background(lambda *_: None, on_running_loop())
    assert await work.run(lambda: 5) == 5
    for error in (OSError("away"), ValueError("wrong")):
        with pytest.raises(type(error), match=str(error)):
            await work.run(failing(1, error))
    work.finish()
