"""An event that is posted: from a request to `/v1/events/NAME` to a request for the engine.

The body is looked at only after the event's inlet has found that its sender may publish it. Whoever came in without a
credential, as a webhook does, must have been proved by the inlet's signature.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from styx.errors import BadArguments, RequestRejected, StyxError, describe
from styx.gateway import head, status
from styx.gateway.auth.identity import IDENTITY, UNPROVED
from styx.gateway.body import IncomingBody
from styx.gateway.engine import Engine
from styx.gateway.status import Answer
from styx.http.asgi import Scope
from styx.model.inlet import PUBLISH, Inlet, inlet_of
from styx.model.request import Placed

NOT_ITS: Final = "the signature is not valid"
_ONE_ARGUMENT: Final = b"\x91"

_log = logging.getLogger("styx.gateway")


async def answer_publish(
    engine: Engine, event: str, scope: Scope, headers: Mapping[bytes, bytes], body: IncomingBody, request_id: str
) -> Answer:
    """Publishes the event of this name. Raises `RequestRejected` and `BadArguments`: nothing was published."""
    try:
        inlet = inlet_of(engine.app, event)
    except BadArguments as error:
        raise RequestRejected("not_found", str(error)) from None
    sent = await body.read(engine.limits.request_bytes_max, headers.get(b"content-length"))
    _prove(inlet, scope, headers, sent)
    request = _request(engine, inlet, scope, headers, sent, request_id)
    return status.answer_of(await engine.submit_request(request))


def _prove(inlet: Inlet, scope: Scope, headers: Mapping[bytes, bytes], sent: bytes) -> None:
    """Raises `RequestRejected` unless the sender is proved."""
    if inlet.verify is None:
        if scope.get(UNPROVED):
            raise RequestRejected(
                "unauthenticated",
                f"event {inlet.event.name!r} is let in without a credential, but its inlet has no verify=",
            )
        return
    texts = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers.items()}
    try:
        proved = inlet.verify(texts, sent)
    except StyxError:
        raise
    except Exception as error:  # noqa: BLE001 - code of the app, and what it was sent
        _log.warning("verify= of the inlet of event %s failed: %s", inlet.event.name, ": ".join(describe(error)))
        proved = False
    if proved is not True:
        raise RequestRejected("unauthenticated", NOT_ITS)


def _request(
    engine: Engine, inlet: Inlet, scope: Scope, headers: Mapping[bytes, bytes], sent: bytes, request_id: str
) -> Placed:
    event = inlet.event
    try:
        value = event.from_json(sent)
        payload = event.encode(value)
    except Exception as error:  # noqa: BLE001 - a type's own code can run here
        raise BadArguments(f"the body is no event {event.name!r}: {': '.join(filter(None, describe(error)))}") from None
    once = _once(inlet, value, scope, headers)
    key = inlet.key_of(value, once or request_id)
    return engine.maker.make(inlet, inlet.check_key(key), PUBLISH, _ONE_ARGUMENT + payload, once, request_id)


def _once(inlet: Inlet, value: Any, scope: Scope, headers: Mapping[bytes, bytes]) -> str:
    """The idempotency key; empty without one."""
    told = inlet.once_of(value)
    if told is None and inlet.once_header is not None:
        sent = headers.get(inlet.once_header.encode())
        if sent is None:
            raise RequestRejected("bad_request", f"the header {inlet.once_header} is missing, which tells repetitions")
        return head.idempotency_key({b"idempotency-key": sent}, scope.get(IDENTITY))
    if told is not None:
        return head.idempotency_key({b"idempotency-key": told.encode()}, scope.get(IDENTITY))
    return head.idempotency_key(headers, scope.get(IDENTITY))
