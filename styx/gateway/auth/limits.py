"""Limits of clients: requests a second and in flight, by identity, and failed authentications, by address. Callers give
the time.

A rate is a token bucket of one second's requests. Each gateway counts separately, so with several gateways the limits
are several times as high.
"""

from __future__ import annotations

import ipaddress
import math
from collections import OrderedDict
from itertools import islice
from typing import Final, NamedTuple

from styx.gateway.auth.identity import Identity

IDENTITIES_MAX: Final = 10_000
"""Limit on the counted identities. Beyond it, the identity with the oldest request and none in flight is forgotten."""
_LOOKED_AT: Final = 16
FAILURES_AT_ONCE_MAX: Final = 20
"""Failures at once from one address before it has to wait."""
FAILURES_PER_SECOND_MAX: Final = 0.2
"""Further failures of such an address: one in five seconds."""
ADDRESSES_MAX: Final = 10_000
"""Limit on the remembered addresses. The one whose last failure is the oldest is forgotten first."""
TOO_MANY_FAILED: Final = "too many credentials from this address proved nothing, this one included"
_IPV6_PREFIX_BITS: Final = 64
"""A customer has a whole network of IPv6, so failures are counted by network."""


class TokenBucket:
    """A token bucket: it allows a number of requests at once, and a rate after that. It is full at first, and fills
    evenly. Size and rate may change with each use.
    """

    __slots__ = ("_at_s", "_left")

    def __init__(self, most: float, now_s: float) -> None:
        self._left = most
        self._at_s = now_s

    def take(self, most: float, per_second: float, now_s: float) -> int | None:
        """Takes one token. If there is none, returns the seconds after which to try again."""
        self._left = min(most, self._left + max(0.0, now_s - self._at_s) * per_second)
        self._at_s = now_s
        if self._left < 1:
            return math.ceil((1 - self._left) / per_second)
        self._left -= 1
        return None


class Exceeded(NamedTuple):
    """The exceeded limit in words, and the seconds after which to try again."""

    what: str
    retry_s: int


class _Use:
    __slots__ = ("bucket", "in_flight")

    def __init__(self, bucket: TokenBucket) -> None:
        self.bucket = bucket
        self.in_flight = 0


class Limits:
    """The limits by identity. `rate` and `in_flight` are for identities without own limits; None: no limit."""

    def __init__(self, rate: float | None = None, in_flight: int | None = None) -> None:
        self._rate = rate
        self._in_flight = in_flight
        self._uses: OrderedDict[str, _Use] = OrderedDict()

    def enter(self, identity: Identity, now_s: float) -> Exceeded | None:
        """Admits a request, unless it is over a limit. An admitted request must `leave`."""
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
        """Notes that an admitted request has been answered."""
        use = self._uses.get(identity.source)
        if use is not None:
            use.in_flight -= 1

    def _forget(self) -> None:
        if len(self._uses) > IDENTITIES_MAX:
            for source in list(islice(self._uses, _LOOKED_AT)):
                if self._uses[source].in_flight == 0:
                    del self._uses[source]


class FailedAttempts:
    """Failed authentications: a bucket for each address.

    A valid credential is always served: 160 random bits or a signature cannot be guessed, and an attacker must not
    lock out others who share the address. A client that keeps failing gets an answer that asks it to come back later.
    A request without a credential is not counted.
    """

    def __init__(self) -> None:
        self._uses: OrderedDict[str, TokenBucket] = OrderedDict()

    def failed(self, address: str, now_s: float) -> int | None:
        """Counts a failure at `now_s`. Returns the seconds after which to try again, None within the limit."""
        name = _network_of(address)
        bucket = self._uses.pop(name, None) or TokenBucket(FAILURES_AT_ONCE_MAX, now_s)
        self._uses[name] = bucket  # as the last one
        if len(self._uses) > ADDRESSES_MAX:
            self._uses.popitem(last=False)
        return bucket.take(FAILURES_AT_ONCE_MAX, FAILURES_PER_SECOND_MAX, now_s)


def _network_of(address: str) -> str:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return address
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.IPv6Network((found.packed, _IPV6_PREFIX_BITS), strict=False))
