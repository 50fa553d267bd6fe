"""The door before the direct way: what the rules of `origin.py` refuse is left to ASGI, whose door refuses it."""

from __future__ import annotations

from typing import Final

from styx.gateway.origin import OriginRules
from styx.http.direct import Direct
from styx.http.direct_request import DirectRequest

_RESPONSE_HEADERS: Final = b"retry-after, styx-age, styx-epoch, styx-request-id, www-authenticate"
_VARY: Final = (b"vary", b"origin")


class DirectDoor:
    """The direct way behind `rules` to `direct`, which takes no page of health and no repeated header. What the rules
    refuse is left to ASGI.
    """

    def __init__(self, direct: Direct, rules: OriginRules) -> None:
        self._direct = direct
        self._rules = rules
        self.serve = direct.serve

    def takes(self, request: DirectRequest) -> bool:
        """As `Direct`."""
        if not self._direct.takes(request):
            return False
        rules = self._rules
        method, path = request.method.decode("ascii"), request.target.decode("ascii")
        verdict = rules.judge_once(method, path, "1.1", request.connection.scheme or "http", request.by_name)
        if verdict.refusal is not None:
            return False
        if rules.shared:
            request.also = cors(verdict.cors_origin)
        return True


def cors(origin: bytes | None) -> list[tuple[bytes, bytes]]:
    """The headers that let pages of `origin`, if there is one, read the answer."""
    found = [_VARY]
    if origin is not None:
        found += [(b"access-control-allow-origin", origin), (b"access-control-expose-headers", _RESPONSE_HEADERS)]
    return found
