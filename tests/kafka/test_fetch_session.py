"""A fetch session: what a fetch names, and what becomes of a session that the broker does not keep."""

from __future__ import annotations

from types import SimpleNamespace

from styx.kafka.fetch_session import FetchSession
from styx.kafka.wire import Fetched

FORGOTTEN, ANOTHER_EPOCH = 70, 71
Asked = tuple[tuple[int, int, list[int]], dict[int, int]]


def asked(session: FetchSession, wanted: dict[int, int]) -> Asked:
    """The session that a fetch names (number, epoch, what to forget), and its partitions with their offsets."""
    request = session.fetch("t", wanted, wait_ms=500, bytes_max=1000, partition_bytes_max=100)
    ((_, partitions),) = request._topics
    return request.session, {partition: offset for partition, offset, _ in partitions}


def begun() -> FetchSession:
    session = FetchSession()
    assert asked(session, {0: 5, 1: 6}) == ((0, 0, []), {0: 5, 1: 6})
    assert session.took(Fetched([], session=9))
    return session


def test_a_fetch_names_what_has_changed() -> None:
    session = begun()
    assert asked(session, {0: 5, 1: 7}) == ((9, 1, []), {1: 7})
    assert session.took(Fetched([], session=9))
    assert asked(session, {1: 7, 2: 0}) == ((9, 2, [0]), {2: 0})
    assert session.took(Fetched([], session=9))
    assert asked(session, {1: 7, 2: 0}) == ((9, 3, []), {})


def test_where_most_has_changed_a_fetch_is_beside_the_session() -> None:
    session = begun()
    without: tuple[int, int, list[int]] = (0, -1, [])
    for at in (10, 20):
        assert asked(session, {0: at, 1: at}) == (without, {0: at, 1: at})
        assert session.took(Fetched([], session=0))
    # The broker still remembers what it was told in the session.
    assert asked(session, {0: 20, 1: 20}) == ((9, 1, []), {0: 20, 1: 20})
    assert session.took(Fetched([], session=9))
    assert asked(session, {0: 20, 1: 21}) == ((9, 2, []), {1: 21})


def test_epochs_go_round() -> None:
    session = begun()
    session._epoch = 2**31 - 1
    assert asked(session, {0: 5, 1: 6})[0] == (9, 2**31 - 1, [])
    assert session.took(Fetched([], session=9))
    assert asked(session, {0: 5, 1: 6})[0] == (9, 1, [])


def test_all_is_named_again_after_a_fetch_without_an_answer() -> None:
    session = begun()
    assert asked(session, {0: 5, 1: 7})[1] == {1: 7}
    session.drop()
    assert asked(session, {0: 5, 1: 7}) == ((9, 0, []), {0: 5, 1: 7}), "and the broker ends the session"


def test_a_session_that_the_broker_has_forgotten() -> None:
    for code in (FORGOTTEN, ANOTHER_EPOCH):
        session = begun()
        asked(session, {0: 5, 1: 7})
        assert not session.took(Fetched([], code=code))
        assert asked(session, {0: 5, 1: 7}) == ((0, 0, []), {0: 5, 1: 7})


def test_a_broker_without_room_or_without_sessions() -> None:
    for answer in (Fetched([], session=0), SimpleNamespace(topics=[])):
        session = FetchSession()
        for _ in range(2):
            assert asked(session, {0: 5}) == ((0, 0, []), {0: 5})
            assert session.took(answer)
