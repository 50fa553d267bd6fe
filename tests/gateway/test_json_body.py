"""Strict JSON: each way a body can be wrong is refused, none is passed on."""

import msgspec
import pytest

from styx import RequestRejected
from styx.gateway.json_body import NESTING_MAX, split


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b'{"a": 1, "a": 2}', "twice"),
        (b'{"a": 1, "\\u0061": 2}', "twice"),
        (b'[{"b": {"a": 1, "a": 1}}]', "twice"),
        (b'["\xff"]', "UTF-8"),
        (b'{"\xc3": 1}', "UTF-8"),
        (b'["\\ud800"]', "JSON"),
        (b"[NaN]", "JSON"),
        (b'[{"a": NaN}]', "JSON"),
        (b"[Infinity]", "JSON"),
        (b"[1] 2", "JSON"),
        (b"[1],", "JSON"),
        (b"[1", "JSON"),
        (b"['a']", "JSON"),
        (b"[01]", "JSON"),
        (b"[1,]", "JSON"),
        (b'{"a": 1,}', "JSON"),
        (b"{1: 2}", "JSON"),
        (b"\xef\xbb\xbf[1]", "JSON"),
        (b'["\x01"]', "JSON"),
        (b"\0", "JSON"),
        (b"[" * 100_000, "deep"),
        (b'{"a":' * 100_000, "deep"),
        (b"[{}," * 100_000, "deep"),
        (b"[" * (NESTING_MAX + 1) + b"]" * (NESTING_MAX + 1), "deep"),
        (b"7", "array"),
        (b"null", "array"),
        (b'"[]"', "array"),
        (b"true", "array"),
    ],
)
def test_refused(body: bytes, why: str) -> None:
    with pytest.raises(RequestRejected, match=why) as caught:
        split(body)
    assert caught.value.code == "bad_request"
    assert len(caught.value.message) < 300


@pytest.mark.parametrize(
    "body",
    [
        b"[" * NESTING_MAX + b"]" * NESTING_MAX,
        b'["' + b"[" * 500 + b'"]',
        b'["\\"' + b"{" * 500 + b'"]',
        b"[" + b"[]," * 500 + b"[]]",
        b'[{"a": 1}, {"a": 1}]',
        b'["{"]',
        b"[" + b"9" * 5000 + b', {"a": ' + b"9" * 5000 + b"}]",
        '["é\U0001f600"]'.encode(),
    ],
)
def test_accepted(body: bytes) -> None:
    assert split(body)


def test_parts_are_left_as_they_were() -> None:
    assert split(b' [1.10, "x"]\n') == [msgspec.Raw(b"1.10"), msgspec.Raw(b'"x"')]
    assert split(b' {"a": [1 ,2]}') == {"a": msgspec.Raw(b"[1 ,2]")}
