"""One shape on a place: all requests at once, then their figures and the audit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.driver.carries import Carries, carries
from benchmarks.driver.place import Place
from benchmarks.driver.probe import ENGINES, Probe
from benchmarks.travelling_numbers.app import counter
from benchmarks.travelling_numbers.audit import Answered, violations
from benchmarks.travelling_numbers.shapes import Arguments, Shape
from styx.client.base import Client
from styx.errors import RequestRejected


class Figures(NamedTuple):
    """`seconds` from the first request to the last reply. `cpu_s` is that of the `ENGINES` in this time. `locked`
    transactions ended in a lock phase. `wrong` holds what the audit found.
    """

    shape: Shape
    requests: int
    answered: int
    seconds: float
    cpu_s: float
    locked: int
    carries: Carries
    wrong: list[str]


async def measured(place: Place, client: Client, shape: Shape, requests: int, seed: int, timeout_s: float) -> Figures:
    """The figures of a shape's requests, none of which was sent to this place before."""
    drawn = shape.requests(requests, place.n_slots, seed)
    deployment = place.deployment
    probe = Probe(deployment.pids)
    await probe.begin()
    began_s = time.monotonic()
    answered = await _sent(client, shape, drawn, timeout_s)
    seconds = time.monotonic() - began_s
    await probe.end()
    replies = [each.reply for each in answered if each.reply is not None]
    records = await asyncio.to_thread(place.epochs)
    return Figures(
        shape=shape,
        requests=requests,
        answered=len(replies),
        seconds=seconds,
        cpu_s=probe.cpu_s(ENGINES),
        locked=sum(reply.phase == 2 for reply in replies),
        carries=carries(records, replies, place.n_slots),
        wrong=await violations(client, shape, answered),
    )


async def _sent(client: Client, shape: Shape, drawn: Sequence[Arguments], timeout_s: float) -> list[Answered]:
    submitted = [client.submit(counter, shape.name, shape.name, *each, timeout=timeout_s) for each in drawn]
    outcomes = await asyncio.gather(*submitted, return_exceptions=True)
    answered = []
    for arguments, outcome in zip(drawn, outcomes, strict=True):
        if not isinstance(outcome, BaseException):
            answered.append(Answered(arguments, outcome))
        elif isinstance(outcome, TimeoutError | ConnectionError | RequestRejected):
            answered.append(Answered(arguments, None, f"{type(outcome).__name__}: {outcome}".rstrip(": ")))
        else:
            raise outcome
    return answered
