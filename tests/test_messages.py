"""Requests and replies: in the log as they were sent, in Python as a caller wants them."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from styx import Reply, ReplyError, RequestRejected, TransactionAborted
from styx.messages import (
    REJECTION_CODES,
    ReplyRecord,
    Request,
    decode_reply,
    decode_request,
    encode_reply,
    encode_request,
    reply_of,
)
from styx.model.limits import REQUEST_ID_CHARS_MAX

numbers = st.integers(0, 2**63 - 1)
keys = st.text() | st.integers(-(2**63), 2**63 - 1) | st.lists(st.text() | st.integers(-(2**63), 2**63 - 1))


@given(st.builds(Request, st.text(), st.text(), keys, st.text(), st.binary(), st.text()))
def test_requests_survive_the_log(request: Request) -> None:
    assert decode_request(encode_request(request)) == request


errors = st.none() | st.tuples(st.text(), st.text(), st.text())


@given(st.builds(ReplyRecord, st.text(), numbers, numbers, numbers, st.integers(0, 2), st.binary(), errors))
def test_replies_survive_the_log(reply: ReplyRecord) -> None:
    assert decode_reply(encode_reply(reply)) == reply


@given(st.binary())
def test_garbage_is_an_error_and_nothing_else(data: bytes) -> None:
    for decode in (decode_request, decode_reply):
        try:
            decode(data)
        except (msgspec.DecodeError, ValueError, RecursionError):
            continue


def test_records_of_a_client_without_idempotency_keys_are_read() -> None:
    data = msgspec.msgpack.encode(["id", "account", "alice", "credit", b"\x91\x05"])
    assert decode_request(data) == Request("id", "account", "alice", "credit", b"\x91\x05", "")


def test_a_request_with_an_id_that_no_reply_could_repeat_is_none() -> None:
    longest = Request("i" * REQUEST_ID_CHARS_MAX, "account", "alice", "credit", b"\x90")
    assert decode_request(encode_request(longest)) == longest
    with pytest.raises(msgspec.ValidationError, match="length <= 256"):
        decode_request(encode_request(msgspec.structs.replace(longest, request_id=longest.request_id + "i")))


def record(result: bytes = b"\x05", error: tuple[str, str, str] | None = None) -> ReplyRecord:
    return ReplyRecord("id", 9, 3, 7, 1, result, error)


def test_a_reply_is_a_result_and_its_place_in_the_serial_order() -> None:
    assert reply_of(record()) == Reply(5, None, tid=3, epoch=7, phase=1, request_id="id")
    assert reply_of(record(b"\xc0")).result is None


def test_an_error_comes_by_name() -> None:
    reply = reply_of(record(b"", ("aborted", "Short", "no money")))
    assert reply.result is None
    assert reply.error == ReplyError(type="Short", message="no money", code="aborted")


def test_unwrapping_gives_the_result_or_raises() -> None:
    assert reply_of(record()).unwrap() == 5
    with pytest.raises(TransactionAborted, match="Short: no money") as aborted:
        reply_of(record(b"", ("aborted", "Short", "no money"))).unwrap()
    assert (aborted.value.type, aborted.value.message) == ("Short", "no money")


@pytest.mark.parametrize("code", sorted(REJECTION_CODES))
def test_unwrapping_a_rejection_raises_its_code(code: str) -> None:
    with pytest.raises(RequestRejected) as rejected:
        reply_of(record(b"", (code, "Error", "why"))).unwrap()
    assert (rejected.value.code, rejected.value.message) == (code, "why")
