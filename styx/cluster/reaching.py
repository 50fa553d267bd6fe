"""Reaching the coordinator: a process of the cluster dials it until it answers; an operator's command asks it once.

Processes of a cluster are started together, so a missing answer is logged only after a while, and a refusal at once.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable
from typing import Final

from styx.cluster.wire import OPERATOR, Answer, Deploy, Drain, Rollback, Scale, SetAside, encode, operator_hears
from styx.transport import Connection, Hello, Refused, Security, dial
from styx.transport.handshake import Refusal

DIAL_SECONDS_MAX: Final = 2.0
PATIENCE_SECONDS: Final = 3.0
"""How long a coordinator may be away before that is told."""


async def reach_coordinator(
    address: str,
    security: Security,
    hello: Hello,
    retry_seconds: float,
    log: logging.Logger,
    on_refused: Callable[[Refused], None] = lambda _: None,
) -> Connection:
    """A connection to the coordinator at `address`, not yet started; attempts are `retry_seconds` apart.

    `on_refused` hears of each refusal. Raises `ConfigurationError` for what no attempt can mend.
    """
    loop = asyncio.get_running_loop()
    began_s, told = loop.time(), set[str]()
    while True:
        try:
            return await dial(address, security, hello, DIAL_SECONDS_MAX)
        except OSError as error:
            reason = str(error)
            refused = isinstance(error, Refused) and error.refusal is not Refusal.HUNG_UP
            if isinstance(error, Refused):
                on_refused(error)
            if reason not in told and (refused or loop.time() - began_s >= PATIENCE_SECONDS):
                told.add(reason)
                log.warning("waiting for the coordinator: %s", reason)
            await asyncio.sleep(retry_seconds)


ASK_DIAL_SECONDS_MAX: Final = 5.0
PING_SECONDS: Final = 0.25
SILENCE_SECONDS: Final = 3.0
"""A coordinator that is silent for longer is gone."""

Order = Deploy | Rollback | Scale | Drain | SetAside
"""A command to the coordinator: one message and one answer, without retries."""


class Unanswered(ConnectionError):
    """The coordinator was there, and the connection ended before it answered."""


async def ask(address: str, security: Security, message: Order) -> Answer:
    """What the coordinator at `address` answers; waits for as long as that takes it.

    Raises `OSError` if it cannot be reached, and `Unanswered` if the connection ends before it answers: the message may
    then have had its effect.
    """
    hello = Hello(cluster=security.cluster, role=OPERATOR, name="operator", incarnation=secrets.token_hex(8))
    link = await dial(address, security, hello, ASK_DIAL_SECONDS_MAX)
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
