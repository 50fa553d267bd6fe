"""An epoch has room for so many bytes of expected results: as their functions gave them lately."""

from __future__ import annotations

from styx import App, Context, Operator
from styx.messages import Request, encode_request
from styx.protocol.frames import Failure
from styx.sequencer.sequencer import Recorded
from styx.worker.pressure import FIRST_TRANSACTIONS, Pressure
from styx.worker.root import RootTransaction

MIB = 1024 * 1024
LARGE, SMALL = "large", "small"
entity = Operator("entity")


@entity.register
async def large(ctx: Context) -> None: ...


@entity.register
async def small(ctx: Context) -> None: ...


app = App("pressure", [entity])


def asks(function: str) -> Recorded:
    return 0, 0, encode_request(Request("r", "entity", "a", function, b"\x90"))


def ended(function: str, size: int, count: int = 1) -> list[RootTransaction]:
    """Transactions that gave so many bytes each."""
    spec = app.resolve("entity", function)
    return [RootTransaction(1, 0, 0, 0, b"", "r", 0, spec, "a0", b"", result=b"x" * size) for _ in range(count)]


def fits(pressure: Pressure, function: str, at_most: int = 1000) -> int:
    """How many of a function one epoch takes."""
    has_room = pressure.begin([])
    if has_room is None:
        return at_most
    return next((n for n in range(at_most) if not has_room(asks(function))), at_most)


def test_functions_count_as_small_until_an_epoch_was_too_heavy() -> None:
    pressure = Pressure(8 * MIB, 250)
    assert pressure.begin([]) is None
    pressure.ended(ended(LARGE, MIB, 8), 8 * MIB)
    assert pressure.begin([]) is None
    pressure.ended(ended(LARGE, MIB, 9), 9 * MIB)
    assert fits(pressure, LARGE) == 8
    assert fits(pressure, SMALL) == 1000


def test_an_epoch_of_small_ones_alone_is_within_its_bytes() -> None:
    pressure = Pressure(8 * MIB, 250)
    each = 8 * MIB // 250
    pressure.ended(ended(SMALL, each, 251), 251 * each)
    assert fits(pressure, SMALL) == 1000
    pressure.ended(ended(SMALL, each + 1, 251), 251 * (each + 1))
    assert fits(pressure, SMALL) <= 250


def test_what_is_carried_is_counted_first() -> None:
    pressure = Pressure(8 * MIB, 250)
    pressure.ended(ended(LARGE, MIB, 9), 9 * MIB)
    has_room = pressure.begin(ended(LARGE, 0, 6))
    assert has_room is not None
    assert [has_room(asks(LARGE)) for _ in range(4)] == [True, True, False, False]
    assert has_room(asks(SMALL))


def test_one_that_is_larger_than_an_epoch_has_its_turn() -> None:
    pressure = Pressure(10, 1)
    pressure.ended(ended(LARGE, 100), 100)
    assert fits(pressure, LARGE) == 1


def test_two_functions_of_one_epoch_are_told_apart() -> None:
    pressure = Pressure(MIB, 250)
    pressure.ended([*ended(SMALL, 10, 100), *ended(LARGE, MIB, 2)], 2 * MIB)
    assert (fits(pressure, SMALL), fits(pressure, LARGE)) == (1000, 1)


def test_a_function_that_gives_little_now_counts_as_small_after_a_while() -> None:
    pressure = Pressure(MIB, 250)
    pressure.ended(ended(LARGE, MIB // 4), 2 * MIB)
    taken = []
    for _ in range(12):
        taken.append(fits(pressure, LARGE))
        pressure.ended(ended(LARGE, 1), 1)
    assert taken[:4] == [4, 8, 16, 32]
    assert taken[-1] == 1000


def test_those_that_fail_say_nothing_of_results() -> None:
    pressure = Pressure(MIB, 250)
    pressure.ended(ended(LARGE, MIB // 4), 2 * MIB)
    failed, unfinished = ended(LARGE, 0, 2)
    failed.failure = Failure(b"", b"", False, "aborted", "ValueError", "no")
    unfinished.result = None
    for _ in range(12):
        pressure.ended([failed, unfinished], 0)
    assert fits(pressure, LARGE) == 4


def test_a_record_that_is_no_request_has_room() -> None:
    pressure = Pressure(10, 1)
    pressure.ended(ended(LARGE, 100), 100)
    has_room = pressure.begin(ended(LARGE, 100))
    assert has_room is not None
    assert has_room((0, 0, b"\xc1"))
    assert not has_room(asks(LARGE))


def test_the_first_epochs_are_small_since_nobody_knows_what_functions_give() -> None:
    pressure = Pressure(8 * MIB, 250)
    rooms = []
    for _ in range(5):
        rooms.append(pressure.transactions)
        pressure.ended(ended(SMALL, 1), 1)
    assert rooms == [FIRST_TRANSACTIONS, 64, 128, 250, 250]
    assert Pressure(8 * MIB, 3).transactions == 3
