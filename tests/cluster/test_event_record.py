"""An event as everybody reads it from Kafka."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from styx import Event
from styx.cluster.event_record import id_of_record, mark_of, record_of_event
from styx.messages import EventRecord

ID = f"{7:012x}1{9:016x}.00000001"


class Paid(msgspec.Struct):
    order: int


paid: Event[Paid] = Event("order-paid", Paid, version=2)


@pytest.mark.parametrize(
    ("key", "written", "as_json"),
    [("é", "é".encode(), '"é"'.encode()), (7, b"7", b"7"), (["a", 7], b'["a",7]', b'["a",7]')],
)
def test_a_record_is_json_with_its_place_in_headers(key: Any, written: bytes, as_json: bytes) -> None:
    record = EventRecord(ID, "order-paid", 2, 5, 1, 9, "shop", key, 1_000, paid.encode(Paid(3)), 0)
    its_key, value, headers = record_of_event(record, paid)
    assert (its_key, value) == (written, b'{"order":3}')
    assert headers == [
        ("styx-id", ID.encode()),
        ("styx-epoch", b"5"),
        ("styx-phase", b"1"),
        ("styx-tid", b"9"),
        ("styx-version", b"2"),
        ("styx-time", b"1000"),
        ("styx-operator", b"shop"),
        ("styx-key", as_json),
        ("content-type", b"application/json"),
    ]
    assert id_of_record(SimpleNamespace(headers=headers)) == ID


def test_what_somebody_else_has_put_into_a_topic_of_events_has_no_id() -> None:
    for made_up in (b"", b"x.1", b"no number.1", b"\xff\xfe"):
        assert id_of_record(SimpleNamespace(headers=[("styx-id", made_up)])) is None


def test_a_mark_has_neither_key_nor_value() -> None:
    key, value, headers = mark_of(7)
    assert (key, value, headers) == (None, None, [("styx-mark", b"7")])
    assert id_of_record(SimpleNamespace(headers=headers)) is None
