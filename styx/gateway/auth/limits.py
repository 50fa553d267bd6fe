"""Limits of each identity: requests a second, and requests in flight. Pure: the caller gives the time.

A rate is a bucket of one second's requests. Each gateway counts for itself, so several gateways let through as many
times more.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import islice
from typing import Final, NamedTuple

from styx.gateway.auth.identity import Identity
from styx.gateway.auth.token_bucket import TokenBucket

IDENTITIES_MAX: Final = 10_000
"""Who is counted; beyond it, who has nothing in flight and was here least lately is forgotten."""
_LOOKED_AT: Final = 16


class Exceeded(NamedTuple):
    """What is over its limit, in words, and after how many seconds to try again."""

    what: str
    retry_s: int


class _Use:
    __slots__ = ("bucket", "in_flight")

    def __init__(self, bucket: TokenBucket) -> None:
        self.bucket = bucket
        self.in_flight = 0


class Limits:
    """`rate` and `in_flight` are for identities without their own; None: no limit."""

    def __init__(self, rate: float | None = None, in_flight: int | None = None) -> None:
        self._rate = rate
        self._in_flight = in_flight
        self._uses: OrderedDict[str, _Use] = OrderedDict()

    def enter(self, identity: Identity, now_s: float) -> Exceeded | None:
        """A request begins, unless it is over a limit. Who is let in must `leave`."""
        rate = self._rate if identity.rate is None else identity.rate
        in_flight = self._in_flight if identity.in_flight is None else identity.in_flight
        most = max(1.0, rate or 0.0)
        use = self._uses.get(identity.source)
        if use is None:
            use = self._uses[identity.source] = _Use(TokenBucket(most, now_s))
            self._forget()
        else:
            self._uses.move_to_end(identity.source)
        if in_flight is not None and use.in_flight >= in_flight:
            return Exceeded(f"{in_flight} requests of {identity.name} are in flight", 1)
        if rate is not None:
            retry_s = use.bucket.take(most, rate, now_s)
            if retry_s is not None:
                return Exceeded(f"{identity.name} may send {rate:g} requests a second", retry_s)
        use.in_flight += 1
        return None

    def leave(self, identity: Identity) -> None:
        """A request that was let in has been answered."""
        use = self._uses.get(identity.source)
        if use is not None:
            use.in_flight -= 1

    def _forget(self) -> None:
        if len(self._uses) > IDENTITIES_MAX:
            for source in list(islice(self._uses, _LOOKED_AT)):
                if self._uses[source].in_flight == 0:
                    del self._uses[source]
