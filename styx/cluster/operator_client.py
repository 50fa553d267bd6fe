"""Commands to the coordinator: deploy, roll back, scale, drain, set aside. One message and one answer, without
retries."""

from __future__ import annotations

import asyncio
import secrets
from typing import Final

from styx.cluster.wire import OPERATOR, Answer, Deploy, Drain, Rollback, Scale, SetAside, encode, operator_hears
from styx.transport import Connection, Hello, Security, dial

DIAL_SECONDS_MAX: Final = 5.0
Order = Deploy | Rollback | Scale | Drain | SetAside

PING_SECONDS: Final = 0.25
SILENCE_SECONDS: Final = 3.0
"""A coordinator that is silent for longer is gone."""


class Unanswered(ConnectionError):
    """The coordinator was there, and the connection ended before it answered."""


async def ask(address: str, security: Security, message: Order) -> Answer:
    """What the coordinator at `address` answers; waits for as long as that takes it.

    Raises `OSError` if it cannot be reached, and `Unanswered` if the connection ends before it answers: the message may
    then have had its effect.
    """
    hello = Hello(cluster=security.cluster, role=OPERATOR, name="operator", incarnation=secrets.token_hex(8))
    link = await dial(address, security, hello, DIAL_SECONDS_MAX)
    answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

    def hear(_: Connection, payloads: list[bytes]) -> None:
        if not answer.done():
            answer.set_result(operator_hears.decode(payloads[0]))

    def lost(_: Connection, reason: str) -> None:
        if not answer.done():
            answer.set_exception(Unanswered(f"the coordinator at {address} gave no answer: {reason}"))

    link.start(hear, lost, ping_seconds=PING_SECONDS, silence_seconds=SILENCE_SECONDS)
    link.send(encode(message))
    try:
        return await answer
    finally:
        link.abort("the answer is there")
