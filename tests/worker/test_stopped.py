"""Which branches of a transaction run no more once a function of it has not ended."""

from __future__ import annotations

from styx.protocol.frames import Failure
from styx.worker.invocation import CUT_CODE
from styx.worker.stopped import Stopped


def end(chain: bytes) -> Failure:
    return Failure(chain, chain, False, CUT_CODE, "FunctionTooLong", "f ran 10 s")


def test_nothing_is_left_out_before_an_end() -> None:
    stopped = Stopped()
    assert not stopped.any
    assert stopped.first(1) is None
    assert not stopped.given_up(1)


def test_the_first_end_in_serial_order_counts_and_a_second_one_gives_up_what_is_left() -> None:
    stopped = Stopped()
    stopped.ended(1, end(b"\0\2"))
    assert stopped.any
    assert stopped.first(1) == end(b"\0\2")
    assert not stopped.given_up(1)
    stopped.ended(1, end(b"\0\1"))
    assert stopped.first(1) == end(b"\0\1")
    assert stopped.given_up(1)
    assert stopped.first(2) is None


def test_what_is_heard_is_no_second_end() -> None:
    stopped = Stopped()
    stopped.heard(1, end(b"\0\2"))
    assert stopped.first(1) == end(b"\0\2")
    stopped.heard(1, end(b"\0\1"))
    assert stopped.first(1) == end(b"\0\2")
    assert not stopped.given_up(1)


def test_another_epoch_begins_with_nothing() -> None:
    stopped = Stopped()
    for _ in range(2):
        stopped.ended(1, end(b"\0\2"))
    stopped.clear()
    assert not stopped.any
    assert stopped.first(1) is None
    assert not stopped.given_up(1)
