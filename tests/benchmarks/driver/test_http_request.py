"""A workload's request as HTTP has it, and what the answers mean."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

import msgspec
import pytest

from benchmarks.driver.http_request import Verdict, body_of, path_of, reply_of, verdict_of
from benchmarks.driver.workload import Planned
from styx import Operator


class Amount(msgspec.Struct):
    units: int


def planned(key: Any, key_type: Any, *arguments: Any) -> Planned:
    return Planned("kind", Operator("an.operator", key_type=key_type), key, "do", arguments)


@pytest.mark.parametrize(
    ("key", "key_type", "segment"),
    [("a/b é", str, "a/b é"), (-7, int, "-7"), ((3, "x/y"), (int, str), '[3,"x/y"]')],
)
def test_a_key_is_in_the_path(key: Any, key_type: Any, segment: str) -> None:
    path = path_of(planned(key, key_type))
    assert path.count("/") == 4
    assert unquote(path) == f"/v1/an.operator/{segment}/do"


def test_arguments_are_a_json_array() -> None:
    assert body_of(planned(1, int)) == "[]"
    assert body_of(planned(1, int, Amount(5), [1, "é"])) == '[{"units":5},[1,"é"]]'


def answer(code: str, what: str | None = None) -> bytes:
    return msgspec.json.encode({"error": {"code": code, "message": "why"} | ({"type": what} if what else {})})


@pytest.mark.parametrize(
    ("status", "body", "verdict"),
    [
        (200, b'{"result":null}', Verdict("kind", "")),
        (409, answer("aborted", "Poor"), Verdict("kind aborted", "")),
        (409, answer("aborted", "KeyError"), Verdict("kind", "409 aborted by KeyError: why")),
        (404, answer("unknown_function"), Verdict("kind", "404 unknown_function: why")),
        (429, answer("overloaded", "Poor"), Verdict("kind", "429 overloaded by Poor: why")),
        (502, b"<html>", Verdict("kind", "status 502 without a reply")),
        (502, b"[]", Verdict("kind", "status 502 without a reply")),
        (0, b"", Verdict("kind", "no answer")),
    ],
)
def test_only_what_the_workload_expects_is_a_success(status: int, body: bytes, verdict: Verdict) -> None:
    assert verdict_of("kind", status, body, {"Poor"}) == verdict


def test_a_reply_in_an_answer_is_as_a_client_gives_it() -> None:
    place = {"id": 7, "epoch": 3, "phase": 1}
    committed = reply_of(200, msgspec.json.encode({"result": [1], "transaction": place}))
    assert committed is not None
    assert (committed.result, committed.error, committed.tid, committed.epoch, committed.phase) == ([1], None, 7, 3, 1)
    aborted = reply_of(409, answer("aborted", "Poor"))
    assert aborted is not None
    assert aborted.error == ("Poor", "why", "aborted")


@pytest.mark.parametrize(
    ("status", "body"), [(504, answer("timeout")), (503, answer("unknown")), (502, b"<html>"), (0, b""), (502, b"{}")]
)
def test_without_a_reply_the_outcome_is_unknown(status: int, body: bytes) -> None:
    assert reply_of(status, body) is None
