"""An echo that gives back something else is noticed, request by request."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from benchmarks.driver.workload import Audit, Planned
from benchmarks.reference.echo_workload import SHOWN_MAX, Echoed, EchoGenerator
from benchmarks.ycsbt.settings import Settings
from benchmarks.ycsbt.workload import YcsbT
from styx.client.base import Client
from styx.messages import Reply, ReplyError

WORKLOAD = YcsbT(Settings(keys=10))


def reply(result: Any, error: ReplyError | None = None) -> Reply:
    return Reply(result, error, 1, 0, 1, "r")


def audit(*generators: EchoGenerator) -> Audit:
    nobody = cast("Client", None)
    return asyncio.run(Echoed(WORKLOAD).audit(nobody, [each.witness() for each in generators]))


def generator() -> EchoGenerator:
    made = Echoed(WORKLOAD).generator(0, 1, 7)
    assert isinstance(made, EchoGenerator)
    return made


def test_it_sends_the_requests_of_the_workload() -> None:
    original, echoed = WORKLOAD.generator(0, 1, 7), generator()
    assert [echoed.next() for _ in range(50)] == [original.next() for _ in range(50)]


def test_nothing_is_loaded() -> None:
    assert list(Echoed(WORKLOAD).initial()) == []


def test_arguments_that_come_back_are_right() -> None:
    client, other = generator(), generator()
    for each in (client, client, other):
        planned = each.next()
        each.answered(planned, reply(list(planned.arguments)))
    assert audit(client, other) == Audit(["3 replies: each has its own request's arguments"], [])


def test_another_requests_arguments_are_wrong() -> None:
    client = generator()
    planned = client.next()
    client.answered(planned, reply([planned.arguments[0] + 1, planned.arguments[1]]))
    (violation,) = audit(client).violations
    assert violation.startswith(f"the arguments {planned.arguments} came back as [")


def test_an_error_is_wrong() -> None:
    client = generator()
    client.answered(client.next(), reply(None, ReplyError("Any", "what it says", "aborted")))
    assert "what it says" in audit(client).violations[0]


def test_only_the_first_wrong_replies_are_described() -> None:
    client = generator()
    planned: Planned = client.next()
    for _ in range(SHOWN_MAX + 3):
        client.answered(planned, reply(None))
    violations = audit(client).violations
    assert len(violations) == SHOWN_MAX + 1
    assert violations[-1] == "and 3 more"
