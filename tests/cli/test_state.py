"""`styx state get` against a real gateway, and against what is none."""

from __future__ import annotations

import socket

import msgspec
import pytest

from styx import OutcomeUnknown
from styx.cli.gateway_request import GatewayAnswer, read_outcome
from styx.model.function_spec import READ_ROWS_FUNCTION
from tests.cli.conftest import Styx
from tests.gateway.fake_engine import FakeEngine


def test_the_state_on_standard_output(styx: Styx, url: str, engine: FakeEngine) -> None:
    engine.state = msgspec.msgpack.encode({"balance": 5})
    assert styx("state", "get", "shelf", "a/b ü", "--url", url + "/") == (0, '{"balance":5}\n', "")
    assert styx("state", "get", "paired", '[1,"x"]', "--url", url).status == 0
    assert styx("state", "get", "numbered", "-42", "--url", url).status == 0
    assert [request.key for request in engine.requests] == ["a/b ü", [1, "x"], -42]
    engine.state = msgspec.msgpack.encode(None)
    assert styx("state", "get", "shelf", "a", "--url", url) == (0, "null\n", "")


def test_an_entity_that_does_not_exist_has_an_exit_code_of_its_own(styx: Styx, url: str) -> None:
    ran = styx("state", "get", "shelf", "nobody", "--url", url)
    assert ran == (3, "", "absent: shelf['nobody'] has no state\n")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["shlef", "a"], "it has: numbered, paired, shelf"),
        (["numbered", "one"], "a decimal number"),
        (["shelf", ""], "is empty"),
    ],
)
def test_rejected(styx: Styx, url: str, words: list[str], complaint: str) -> None:
    ran = styx("state", "get", *words, "--url", url)
    assert (ran.status, ran.out) == (2, "")
    assert complaint in ran.err


def test_options_that_are_wrong(styx: Styx, url: str) -> None:
    assert styx("state", "get", "shelf", "a", "--timeout", "0", "--url", url).status == 2
    assert styx("state", "get", "shelf", "a", "--url", "nowhere").status == 2
    assert styx("state", "get", "shelf").status == 2


def test_no_reply(styx: Styx, url: str, engine: FakeEngine) -> None:
    engine.hold()
    ran = styx("state", "get", "shelf", "a", "--url", url, "--timeout", "0.01")
    assert ran == (1, "", "styx: no reply within 0.01 s; nothing was changed, ask again\n")
    engine.reset()
    engine.outcome = OutcomeUnknown("it failed")
    ran = styx("state", "get", "shelf", "a", "--url", url)
    assert ran == (1, "", "styx: it failed; nothing was changed, ask again\n")
    engine.reset()
    engine.unavailable_reason = "it is closing"
    assert styx("state", "get", "shelf", "a", "--url", url).err == "unavailable: it is closing; try again later\n"


def test_nobody_there(styx: Styx) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        ran = styx("state", "get", "shelf", "a", "--url", f"http://127.0.0.1:{free.getsockname()[1]}")
    assert (ran.status, ran.out) == (1, "")
    assert "no gateway answers at" in ran.err
    assert "styx dev MODULE:APP" in ran.err


def test_something_else_there() -> None:
    outcome = read_outcome(GatewayAnswer(502, b"<html>"), "http://127.0.0.1:1")
    assert (outcome.exit_code, outcome.output) == (1, "")
    assert "is no reply of a gateway" in outcome.complaint


def test_help(styx: Styx) -> None:
    assert "get" in styx("state", "--help").out
    out = styx("state", "get", "--help").out
    assert "3    there is no such entity" in out
    assert "state" in styx("--help").out


def test_rows_of_an_entity(styx: Styx, url: str, engine: FakeEngine) -> None:
    styx("state", "get", "shelf", "a", "--rows", "items & more", "--url", url)
    [request] = engine.requests
    assert (request.function, msgspec.msgpack.decode(request.params)) == (READ_ROWS_FUNCTION, ["items & more"])
