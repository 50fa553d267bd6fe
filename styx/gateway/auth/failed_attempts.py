"""The limit of failed authentications, by client address. Pure: the caller gives the time.

A valid credential is always served: nobody guesses 160 random bits or a signature, and an attacker must not lock out
others who share the address. A client that keeps failing is told to come back later. A request without a credential is
not an attempt.
"""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from typing import Final

from styx.gateway.auth.token_bucket import TokenBucket

FAILURES_AT_ONCE_MAX: Final = 20
"""From one address, before it has to wait."""
FAILURES_PER_SECOND_MAX: Final = 0.2
"""Beyond them: one in five seconds."""
ADDRESSES_MAX: Final = 10_000
"""That are remembered; the one that failed least lately is forgotten first."""
TOO_MANY_FAILED: Final = "too many credentials from this address proved nothing, this one included"
_IPV6_PREFIX_BITS: Final = 64
"""What one customer has of IPv6 is a network, not an address."""


class FailedAttempts:
    """A bucket for each address."""

    def __init__(self) -> None:
        self._uses: OrderedDict[str, TokenBucket] = OrderedDict()

    def failed(self, address: str, now_s: float) -> int | None:
        """One more failed, at `now_s`; after how many seconds to try again, None within the limit."""
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
