"""A request made by hand as an engine takes it."""

from __future__ import annotations

from styx.embedded_engine.engine import EmbeddedEngine
from styx.messages import Request
from styx.model.request import Placed


def placed(engine: EmbeddedEngine, request: Request) -> Placed:
    """Its key is not checked yet; with an empty id it gets one of the engine's."""
    key, arguments = request.key, (request.function, request.params, request.idempotency_key)
    return engine.maker.make(request.operator, key, *arguments, request.request_id)
