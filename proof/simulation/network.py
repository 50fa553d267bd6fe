"""Connections between processes: in order within one connection, at random speed, so in any order across them.

A message to a process that has crashed meanwhile is lost; everything is encoded and decoded, as on a wire.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from proof.simulation.virtual_time import VirtualTime

USUAL_DELAY_S = 0.001
SLOW_DELAY_S = 0.08


class Network:
    """`send` delivers later; the delivery decides itself whether its receiver is still there."""

    def __init__(self, time: VirtualTime, rng: Random, slow_share: float) -> None:
        self._time = time
        self._rng = rng
        self._slow_share = slow_share
        self._arrival_s: dict[tuple[str, str], float] = {}
        self.messages = 0

    def send(self, sender: str, receiver: str, deliver: Callable[[bytes], None], data: bytes) -> None:
        """Delivers `data` after everything sent earlier on this connection."""
        delay_s = self._rng.random() * (SLOW_DELAY_S if self._rng.random() < self._slow_share else USUAL_DELAY_S)
        arrival_s = max(self._arrival_s.get((sender, receiver), 0.0), self._time.now_s + delay_s)
        self._arrival_s[sender, receiver] = arrival_s
        self.messages += 1
        self._time.at(arrival_s, deliver, data)
