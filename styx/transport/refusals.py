"""The peers that a listener refused: their count, and which of them it has logged."""

from __future__ import annotations

import logging
from collections import OrderedDict
from typing import Final

from styx.transport.handshake import Refusal, Refused

REMEMBERED_MAX: Final = 1024
"""Pairs of host and reason that are not logged again; the one longest unseen is forgotten first."""

_log = logging.getLogger("styx.transport")


class Refusals:
    """Counts refused peers, and logs each host once for each reason: a peer that tries on does not fill a disk."""

    def __init__(self) -> None:
        self.count = 0
        self._logged: OrderedDict[tuple[str, Refusal], None] = OrderedDict()

    def add(self, host: str, refused: Refused) -> None:
        self.count += 1
        key = (host, refused.refusal)
        if key not in self._logged:
            _log.warning("refused a connection from %s: %s (logged once)", host, refused)
            if len(self._logged) == REMEMBERED_MAX:
                self._logged.popitem(last=False)
            self._logged[key] = None
        self._logged.move_to_end(key)
