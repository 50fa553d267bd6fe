"""`styx call` against a real gateway, and against things that are none."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from styx.cli.call import json_arguments
from styx.cli.exit_codes import USAGE, CommandFailed
from styx.cli.gateway_request import GatewayAnswer, call_outcome
from tests.cli.conftest import Ran, Styx
from tests.gateway.fake_engine import FakeEngine


def test_result_on_standard_output(styx: Styx, url: str) -> None:
    assert styx("call", "shelf", "a", "add", "2", "-5", "--url", url) == (0, "-3\n", "")
    assert styx("call", "shelf", "a", "echo", '{"b": [1, null]}', "--url", url + "/") == (0, '{"b":[1,null]}\n', "")
    assert styx("call", "shelf", "a", "echo", "bob", "--url", url) == (0, '"bob"\n', "")
    assert styx("call", "shelf", "a", "echo", "--url", url, "--", "--url") == (0, '"--url"\n', "")


def test_the_server_reads_the_key(styx: Styx, url: str) -> None:
    assert styx("call", "numbered", "-42", "key", "--url", url).out == '"-42"\n'
    assert styx("call", "paired", '[1,"x/y"]', "key", "--url", url).out == "\"(1, 'x/y')\"\n"
    assert styx("call", "shelf", "42/ü ?", "key", "--url", url).out == "\"'42/ü ?'\"\n"


def test_options_from_the_environment(
    styx: Styx, url: str, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STYX_URL", url)
    monkeypatch.setenv("STYX_IDEMPOTENCY_KEY", "same")
    assert [styx("call", "shelf", "a", "add", n).out for n in ("1", "5")] == ["2\n", "2\n"]
    assert [request.idempotency_key for request in engine.requests] == ["same", "same"]


def test_every_request_can_be_repeated(styx: Styx, url: str, engine: FakeEngine) -> None:
    for _ in range(2):
        styx("call", "shelf", "a", "add", "1", "--url", url)
    first, second = (request.idempotency_key for request in engine.requests)
    assert "" != first != second


def test_abort(styx: Styx, url: str) -> None:
    ran = styx("call", "shelf", "a", "fail", "none left", "--url", url)
    assert ran == (1, "", "aborted: OutOfStock: none left\n")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["shlef", "a", "add", "1"], "it has: numbered, paired, shelf"),
        (["shelf", "a", "ad", "1"], "has no function 'ad'"),
        (["shelf", "a", "add", "one"], "Arguments are JSON"),
        (["numbered", "one", "key"], "a decimal number"),
        (["shelf", "", "key"], "is empty"),
        (["shelf", "a", "add", "{1}"], "begins like JSON"),
        (["shelf", "a", "echo", "x", "--idempotency-key", "two words"], "rejected: "),
    ],
)
def test_rejected(styx: Styx, url: str, words: list[str], complaint: str) -> None:
    ran = styx("call", *words, "--url", url)
    assert (ran.status, ran.out) == (2, "")
    assert complaint in ran.err


def test_later(styx: Styx, url: str, engine: FakeEngine) -> None:
    engine.unavailable_reason = "the disk is full"
    ran = styx("call", "shelf", "a", "key", "--url", url)
    assert ran == (1, "", "unavailable: the disk is full; try again later\n")


def test_no_reply_in_time(styx: Styx, url: str, engine: FakeEngine) -> None:
    engine.hold()
    seconds, ran = 0.001, Ran(0, "", "the body did not arrive")
    while "the body did not arrive" in ran.err:  # it has the same time, and a busy machine may need more
        seconds *= 10
        ran = styx("call", "shelf", "a", "key", "--url", url, "--timeout", f"{seconds:g}", "--idempotency-key", "k1")
    assert ran.status == 1
    assert f"no reply within {seconds:g} s; the request may have committed" in ran.err
    assert "--idempotency-key k1" in ran.err


@pytest.mark.parametrize(
    "answer",
    [
        GatewayAnswer(504, b'{"error":{"code":"unknown","type":"OutcomeUnknown","message":"it failed; the rest"}}'),
        GatewayAnswer(502, b"<html>Bad Gateway</html>"),
    ],
)
def test_an_outcome_that_nobody_knows(answer: GatewayAnswer) -> None:
    outcome = call_outcome(answer, "http://127.0.0.1:1", "k1")
    assert outcome.exit_code == 1
    assert "; the request may have committed.\n" in outcome.complaint
    assert "--idempotency-key k1" in outcome.complaint


def test_nobody_there(styx: Styx) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        ran = styx("call", "shelf", "a", "key", "--url", f"http://127.0.0.1:{port}")
    assert ran.status == 1
    assert "Connection refused; nothing was sent" in ran.err
    assert f"styx dev MODULE:APP --port {port}" in ran.err


@pytest.mark.parametrize("wrong", ["127.0.0.1:8080", "ftp://x", "http://", "http://x:port", "http://x?y", "http://[x"])
def test_no_url(styx: Styx, wrong: str) -> None:
    ran = styx("call", "shelf", "a", "key", "--url", wrong)
    assert ran.status == 2
    assert "looks like http://127.0.0.1:8080" in ran.err


@contextmanager
def answering(answer: bytes) -> Iterator[str]:
    """A server that gives one connection this answer and closes it."""

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65_536)
            connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread.join()


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (b"", "the request may have committed"),
        (b"SSH-2.0-OpenSSH_9\r\n", "the request may have committed"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "no reply of a gateway"),
        (b"HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", "status 302"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{", "the request may have committed"),
    ],
)
def test_other_servers(styx: Styx, answer: bytes, complaint: str) -> None:
    with answering(answer) as url:
        ran = styx("call", "shelf", "a", "key", "--url", url)
    assert ran.status == 1
    assert complaint in ran.err
    assert len(ran.err.splitlines()) == 2


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "[]"),
        (["10", "-5", "1.5"], "[10,-5,1.5]"),
        (["true", "null", '"10"'], '[true,null,"10"]'),
        (["bob"], '["bob"]'),
        (["two words", 'with "quotes"', ""], '["two words","with \\"quotes\\"",""]'),
        (['{"name": "tea"}', "[1, 2]"], '[{"name": "tea"},[1, 2]]'),
        (["2026-01-02", "1-2", "0x10", "True", "NaN"], '["2026-01-02","1-2","0x10","True","NaN"]'),
        (["12345678901234567890123"], "[12345678901234567890123]"),
        (["Zoë"], '["Zoë"]'),
    ],
)
def test_json_where_it_is_json_and_text_elsewhere(words: list[str], expected: str) -> None:
    assert json_arguments(words).decode() == expected


@pytest.mark.parametrize("word", ['{"name": tea}', "{name: tea}", "[1, 2", '"tea', ' {"a"'])
def test_half_json_is_a_slip(word: str) -> None:
    with pytest.raises(CommandFailed, match="argument 2 begins like JSON") as raised:
        json_arguments(["1", word])
    assert raised.value.exit_code == USAGE


def test_not_unicode() -> None:
    with pytest.raises(CommandFailed, match="not valid Unicode"):
        json_arguments(["\udcff"])
