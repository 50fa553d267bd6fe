"""Results as JSON: every value that msgpack can hold has a form, or says that it has none."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from styx.gateway.status import ResultNotJson, result_json
from styx.values.codec import encode_strict


@pytest.mark.parametrize(
    ("value", "json"),
    [
        (None, b"null"),
        (b"\xff", b'"/w=="'),
        (datetime(2026, 1, 2, tzinfo=UTC), b'"2026-01-02T00:00:00Z"'),
        (datetime(2026, 1, 2), b'"2026-01-02T00:00:00"'),  # noqa: DTZ001 - a function may return one
        ([float("nan"), float("inf"), 1.5], b"[null,null,1.5]"),
        ({1: 2, 1.5: 3, b"x": 4}, b'{"1":2,"1.5":3,"eA==":4}'),
        ({None: 1, True: {(1, "a"): 2}}, b'{"null":1,"true":{"[1,\\"a\\"]":2}}'),
        (2**64 - 1, b"18446744073709551615"),
    ],
)
def test_forms(value: Any, json: bytes) -> None:
    assert result_json(msgspec.msgpack.encode(value)) == json


def test_state_that_is_returned_as_it_was_encoded() -> None:
    assert result_json(encode_strict(datetime(2026, 1, 2, tzinfo=UTC))) == b'"2026-01-02T00:00:00Z"'
    assert result_json(b"") == b"null"


@pytest.mark.parametrize("data", [b"\xc1", b"\x92\x01", b"\xd4\x63\x00", b"\x91" * 100_000 + b"\xc0", b"\xa1\xff"])
def test_no_form(data: bytes) -> None:
    with pytest.raises(ResultNotJson):
        result_json(data)
