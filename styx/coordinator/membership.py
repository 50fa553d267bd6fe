"""Who is there: connected workers, when each was last heard of, and which of them take part in a generation.

The rest stands by. Never starts a generation and never reads a clock; times are the coordinator's ticks, in seconds.
Paper section 7.2 (failure detection).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

PATIENCE_MAX = 16
"""How many times longer than usual a worker may be silent at most, where silence has proved to mean little."""
CALM_SILENCES = 20
"""So many times the silence allowed, without anybody being silent for too long, and the patience is halved again."""

SHUNNED_S: Final = 120.0
"""How long a process that its peers could not reach stands by when it joins anew, as long as somebody else is there."""


class Membership:
    """`members` take part in the current generation; everybody else in `live` is standing by.

    Parameters: how many workers are wanted; how long to wait for them before starting with fewer (None: for ever);
    how long one may be silent (None: only its connection tells).
    """

    def __init__(self, wanted: int, grace_s: float | None, silence_max_s: float | None) -> None:
        self.wanted = wanted
        self.members: frozenset[int] = frozenset()
        self.addresses: dict[int, str] = {}
        self._grace_s = grace_s
        self._silence_max_s = silence_max_s
        self._live: dict[int, float] = {}
        self._heard: set[int] = set()
        self._before: frozenset[int] = frozenset()
        self._first_joined_s: float | None = None
        self._shunned: dict[str, float] = {}
        self._patience = 1
        self._calm_since_s = 0.0

    @property
    def live(self) -> frozenset[int]:
        """Workers that are connected and not silent for too long."""
        return frozenset(self._live)

    @property
    def settled(self) -> bool:
        """As many take part as are wanted, or as there are."""
        return len(self.members) == min(self.wanted, len(self._eligible))

    @property
    def _eligible(self) -> list[int]:
        return [worker for worker in self._live if self.addresses[worker] not in self._shunned] or list(self._live)

    def join(self, worker: int, address: str, now_s: float) -> None:
        """The worker has connected."""
        self._live[worker] = now_s
        self.addresses[worker] = address
        if self._first_joined_s is None:
            self._first_joined_s = now_s

    def leave(self, workers: Iterable[int]) -> bool:
        """The workers are gone; whether the generation has lost a member."""
        gone = set(workers)
        for worker in gone:
            self._live.pop(worker, None)
            self.addresses.pop(worker, None)
        return not self.members.isdisjoint(gone)

    def shun(self, worker: int, now_s: float) -> None:
        """Its peers cannot reach the worker. At once it would join anew, and end every generation as it does now."""
        self._shunned[self.addresses[worker]] = now_s + SHUNNED_S

    def hear(self, worker: int) -> None:
        """The worker's protocol made progress."""
        self._heard.add(worker)

    def silent(self, now_s: float) -> list[int]:
        """Who has been silent for too long."""
        # Only silence between two ticks counts: a coordinator that was itself asleep has heard nobody.
        self._live.update(dict.fromkeys(self._heard & self._live.keys(), now_s))
        self._heard = set()
        self._shunned = {address: until_s for address, until_s in self._shunned.items() if now_s < until_s}
        if self._silence_max_s is None:
            return []
        allowed_s = self._silence_max_s * self._patience
        silent = [w for w, heard_s in self._live.items() if now_s - heard_s > allowed_s]
        if silent:
            # On a machine that is overloaded every worker seems dead after a while; replacing them, and loading their
            # slots anew, would be all that is ever done.
            self._patience = min(2 * self._patience, PATIENCE_MAX)
            self._calm_since_s = now_s
        elif self._patience > 1 and now_s - self._calm_since_s > CALM_SILENCES * allowed_s:
            self._patience //= 2
            self._calm_since_s = now_s
        return silent

    def enough(self, now_s: float) -> bool:
        """A generation may begin: everybody wanted is there, or the wait for the first one is over."""
        if not self._live:
            return False
        if self._before or len(self._live) >= self.wanted:
            return True
        waited_s = now_s - (self._first_joined_s or 0.0)
        return self._grace_s is not None and waited_s >= self._grace_s

    def dissolve(self) -> None:
        """The generation has ended."""
        self.members = frozenset()

    def convene(self) -> frozenset[int]:
        """The members of a new generation: who was a member before, then who has the lowest number."""
        ranked = sorted(self._eligible, key=lambda worker: (worker not in self._before, worker))
        self.members = frozenset(ranked[: self.wanted])
        return self.members

    def place(self) -> None:
        """The members have slots now: if some are lost, the others go on without them."""
        self._before = self.members
