"""Payloads come out as they went in, however the stream is cut, and nothing is believed that was only announced."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from styx.model.limits import MIB
from styx.transport import frame
from styx.transport.frame import FRAME_BYTES_MAX, MORE, FrameReader, FrameTooLarge, prefix_of, take_frame

payload_lists = st.lists(st.binary(max_size=30) | st.integers(200, 400).map(bytes))


def stream_of(payloads: list[bytes]) -> bytes:
    return b"".join(prefix_of(len(payload)) + payload for payload in payloads)


def pieces_of(data: bytes, cuts: list[int]) -> Iterator[bytes]:
    ends = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    for start, end in pairwise(ends):
        yield data[start:end]


@given(payload_lists, st.lists(st.integers(0, 10_000)))
def test_any_cut_gives_the_same_payloads(payloads: list[bytes], cuts: list[int]) -> None:
    reader = FrameReader(400)
    received = [payload for piece in pieces_of(stream_of(payloads), cuts) for payload in reader.feed(piece)]
    assert received == payloads
    assert not reader.incomplete


@given(payload_lists)
def test_byte_by_byte(payloads: list[bytes]) -> None:
    reader = FrameReader(400)
    stream = stream_of(payloads)
    assert [payload for byte in stream for payload in reader.feed(bytes([byte]))] == payloads


@given(payload_lists, st.binary(min_size=1, max_size=20), st.data())
def test_a_payload_is_given_when_its_last_byte_is_there(
    payloads: list[bytes], last: bytes, data: st.DataObject
) -> None:
    cut = data.draw(st.integers(1, len(last) + 3))
    reader = FrameReader(400)
    whole = stream_of([last])
    assert reader.feed(stream_of(payloads) + whole[:cut]) == payloads
    assert reader.incomplete
    assert reader.feed(whole[cut:]) == [last]
    assert not reader.incomplete


def in_pieces(payloads: list[bytes], size: int) -> bytes:
    stream = b""
    for payload in payloads:
        pieces = [payload[at : at + size] for at in range(0, len(payload), size)] or [b""]
        for piece in pieces[:-1]:
            stream += prefix_of(MORE | len(piece)) + piece
        stream += stream_of(pieces[-1:])
    return stream


@given(payload_lists, st.integers(1, 7), st.lists(st.integers(0, 10_000)))
def test_payloads_of_several_frames(payloads: list[bytes], size: int, cuts: list[int]) -> None:
    reader = FrameReader(7)
    stream = in_pieces(payloads, size)
    assert [payload for piece in pieces_of(stream, cuts) for payload in reader.feed(piece)] == payloads
    assert not reader.incomplete


def test_a_payload_of_several_frames_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame, "PAYLOAD_BYTES_MAX", 20)
    reader = FrameReader(10)
    assert reader.feed(in_pieces([bytes(20)], 10)) == [bytes(20)]
    reader.feed(prefix_of(MORE | 10) + bytes(10))
    assert reader.incomplete
    with pytest.raises(FrameTooLarge, match="20"):
        reader.feed((prefix_of(MORE | 10) + bytes(10)) * 2)
    for prefix in (MORE, MORE | 11):
        with pytest.raises(FrameTooLarge):
            FrameReader(10).feed(prefix_of(prefix))
    with pytest.raises(FrameTooLarge):
        take_frame(bytearray(prefix_of(MORE | 5) + b"hello"), 10)


def test_the_limit_is_the_largest_length_allowed() -> None:
    assert FrameReader(5).feed(stream_of([b"12345", b""])) == [b"12345", b""]
    with pytest.raises(FrameTooLarge, match="6 bytes is over the limit of 5"):
        FrameReader(5).feed(prefix_of(6))


def test_a_large_prefix_is_refused_without_its_payload_however_it_arrives() -> None:
    reader = FrameReader()
    prefix = prefix_of(1 << 30)
    assert reader.feed(prefix[:3]) == []
    with pytest.raises(FrameTooLarge):
        reader.feed(prefix[3:])


def test_an_announced_length_is_not_allocated() -> None:
    reader = FrameReader()
    tracemalloc.start()
    try:
        reader.feed(prefix_of(FRAME_BYTES_MAX) + b"0123456789")
        assert tracemalloc.get_traced_memory()[1] < MIB
    finally:
        tracemalloc.stop()


def test_a_large_payload_in_many_pieces_is_held_about_once() -> None:
    payload = bytes(8 * MIB)
    stream = stream_of([payload])
    reader = FrameReader()
    tracemalloc.start()
    try:
        received = [
            frame for start in range(0, len(stream), 1000) for frame in reader.feed(stream[start : start + 1000])
        ]
        # The buffer grows by an eighth, and for a moment there are two of them.
        assert tracemalloc.get_traced_memory()[1] < 2.5 * len(payload)
    finally:
        tracemalloc.stop()
    assert received == [payload]


@given(payload_lists, st.binary(max_size=3))
def test_frames_are_taken_one_at_a_time(payloads: list[bytes], rest: bytes) -> None:
    received = bytearray(stream_of(payloads) + rest)
    assert [take_frame(received, 400) for _ in payloads] == payloads
    assert take_frame(received, 400) is None
    assert received == rest


def test_taking_minds_the_limit_and_leaves_what_is_incomplete() -> None:
    with pytest.raises(FrameTooLarge):
        take_frame(bytearray(b"GET / HTTP/1.1\r\n"), 4096)
    received = bytearray(stream_of([b"abc"])[:-1])
    assert take_frame(received, 4096) is None
    assert len(received) == 6
