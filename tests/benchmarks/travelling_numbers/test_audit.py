"""The audit of travelling numbers: what an engine does passes, and each thing that could be wrong is found."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import styx
from benchmarks.travelling_numbers.app import app, counter
from benchmarks.travelling_numbers.audit import Answered, violations
from benchmarks.travelling_numbers.shapes import SHAPES
from styx.messages import Reply, ReplyError

SLOTS = 4
Spoil = Callable[[list[Answered]], list[Answered]]


def found(shape: str, spoil: Spoil = lambda answered: answered, more: tuple[str, Any, str, Any] | None = None) -> str:
    """What the audit says of six requests, if what was seen of them is spoilt, or `more` is called beside them."""

    async def run() -> list[str]:
        async with styx.embedded(app, n_slots=SLOTS) as client:
            answered = []
            for arguments in SHAPES[shape].requests(6, SLOTS, seed=1):
                answered.append(Answered(arguments, await client.request(counter, shape, shape, *arguments)))
            if more is not None:
                operator, key, function, argument = more
                await client.call(operator, key, function, *argument)
            return await violations(client, SHAPES[shape], spoil(answered))

    return "\n".join(asyncio.run(run()))


def changed(index: int, **fields: Any) -> Spoil:
    def spoil(answered: list[Answered]) -> list[Answered]:
        reply = answered[index].reply
        assert reply is not None
        return [
            each._replace(reply=reply._replace(**fields)) if number == index else each
            for number, each in enumerate(answered)
        ]

    return spoil


@pytest.mark.parametrize("shape", SHAPES)
def test_what_an_engine_did_passes(shape: str) -> None:
    assert found(shape) == ""


@pytest.mark.parametrize("shape", SHAPES)
def test_a_wrong_result_is_found(shape: str) -> None:
    assert "but the serial execution gives" in found(shape, changed(3, result=7))


@pytest.mark.parametrize("shape", ["as_argument", "for_a_result", "along_a_chain"])
def test_requests_that_ran_in_another_order_than_the_replies_say_are_found(shape: str) -> None:
    def swapped(answered: list[Answered]) -> list[Answered]:
        first, second = (each.reply for each in answered[:2])
        assert first is not None
        assert second is not None
        places = (first.epoch, first.phase, first.tid), (second.epoch, second.phase, second.tid)
        (a, b, c), (x, y, z) = places
        there = [
            answered[0]._replace(reply=first._replace(epoch=x, phase=y, tid=z)),
            answered[1]._replace(reply=second._replace(epoch=a, phase=b, tid=c)),
        ]
        return [*there, *answered[2:]]

    assert "but the serial execution gives" in found(shape, swapped)


@pytest.mark.parametrize(
    ("shape", "more"),
    [
        ("as_argument", ("counter", "as_argument", "as_argument", ("ledger-0",))),
        ("as_argument", ("ledger", "ledger-0", "note", (3,))),
        ("as_key", ("invoice", 3, "issue", ())),
        ("as_key", ("invoice", 7, "issue", ())),
        ("for_a_result", ("price", "price-3", "quote", (2,))),
        ("along_a_chain", ("stage", "stage-4", "pass_on", (2, []))),
    ],
)
def test_an_effect_too_many_is_found(shape: str, more: tuple[str, Any, str, Any]) -> None:
    assert " holds " in found(shape, more=more)


def test_a_request_that_took_part_twice_unseen_is_found() -> None:
    # As a lost effect: what is compared with the state has one request less than the state.
    assert " holds " in found("as_argument", lambda answered: answered[:-1])


def test_a_request_without_a_reply_is_named_and_so_is_one_that_failed() -> None:
    silent = found("as_key", lambda answered: [*answered[:5], Answered((), None, "TimeoutError")])
    assert silent.splitlines()[0] == "request 5 has no reply: TimeoutError"
    assert "the state was not compared, because 1 requests have no result" in silent
    failed = found("as_key", changed(2, error=ReplyError("Low", "too low", "aborted")))
    assert failed.splitlines()[0] == "request 2 failed: Low: too low"


def test_many_violations_are_counted() -> None:
    def all_wrong(answered: list[Answered]) -> list[Answered]:
        return [each._replace(reply=Reply(99, None, n, 0, 1, "r")) for n, each in enumerate(answered)]

    assert "and 1 more like that" in found("as_key", all_wrong)
