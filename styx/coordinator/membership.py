"""Membership: connected workers, when each was last heard of, which of them take part in a generation, and with which
slots.

The other workers stand by, or leave. Times are the coordinator's ticks, in seconds. Paper section 7.2 (failure
detection, placement).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

PATIENCE_MAX = 16
"""How many times longer than usual a worker may be silent at most, where silence has proved to mean little."""
CALM_SILENCES = 20
"""So many times the silence allowed, without anybody being silent for too long, and the patience is halved again."""

SHUNNED_S: Final = 120.0
"""How long a process that its peers could not reach stands by when it joins anew, as long as somebody else is there."""

SETTLE_S: Final = 3.0
"""Where every worker that is there takes part: how long nobody may have joined before a start, and how long a change
waits, from the first that joined on, for others to be part of it.
"""


class Membership:
    """`members` take part in the current generation; everybody else in `live` is standing by, or leaves.

    A worker in `leaving` is to have no slots: it takes part only as long as its slots have not moved, and in a recovery
    where nobody else is left. Once it is let go it never takes part again.

    Parameters: how many workers are wanted (None: all that are there, up to `most`); how long to wait for them before
    starting with fewer (None: for ever); how long one may be silent (None: only its connection tells); how long workers
    that join count as joining together.
    """

    def __init__(
        self,
        wanted: int | None,
        grace_s: float | None,
        silence_max_s: float | None,
        most: int = 1,
        settle_s: float = SETTLE_S,
    ) -> None:
        self.wanted = wanted
        self.members: frozenset[int] = frozenset()
        self.addresses: dict[int, str] = {}
        self.leaving: set[int] = set()
        self._most = most
        self._settle_s = settle_s
        self._let_go: set[int] = set()
        self._last_joined_s = 0.0
        self._gathering_since_s: float | None = None
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
    def target(self) -> int:
        """How many workers should take part."""
        return min(self._most if self.wanted is None else self.wanted, len(self.eligible))

    @property
    def settled(self) -> bool:
        """As many workers take part as are wanted, or as are eligible, and none of them leaves."""
        return len(self.members) == self.target and self.members.isdisjoint(self.leaving)

    @property
    def changing(self) -> bool:
        """Other workers should take part. If all workers take part, only once the joining ones have gathered."""
        if self.settled:
            return False
        return self._gathering_since_s is None or not self.members.isdisjoint(self.leaving)

    @property
    def eligible(self) -> list[int]:
        """Workers that may own slots."""
        staying = [worker for worker in self._live if worker not in self.leaving]
        return [worker for worker in staying if self.addresses[worker] not in self._shunned] or staying

    @property
    def _candidates(self) -> list[int]:
        """The workers that may own slots. If only leaving workers remain, one of them recovers the slots."""
        return self.eligible or [worker for worker in self._live if worker not in self._let_go]

    def join(self, worker: int, address: str, now_s: float) -> None:
        """The worker has connected."""
        if self.wanted is None and self.settled:
            self._gathering_since_s = now_s
        if self._first_joined_s is None or not self.eligible:
            self._first_joined_s = now_s
        self._live[worker] = self._last_joined_s = now_s
        self.addresses[worker] = address

    def leave(self, workers: Iterable[int]) -> bool:
        """The workers are gone; whether the generation has lost a member."""
        gone = set(workers)
        for worker in gone:
            self._live.pop(worker, None)
            self.addresses.pop(worker, None)
        self.leaving -= gone
        self._let_go -= gone
        return not self.members.isdisjoint(gone)

    def let_go(self) -> list[int]:
        """Workers that leave and take no part; each is returned once."""
        free = sorted(self.leaving - self.members - self._let_go)
        self._let_go.update(free)
        return free

    def gathered(self, now_s: float) -> bool:
        """Whether the wait for more workers to join has just ended."""
        since_s = self._gathering_since_s
        if since_s is None or now_s - since_s < self._settle_s:
            return False
        self._gathering_since_s = None
        return True

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
        there = self._candidates
        if not there:
            return False
        waited_s = now_s - (self._first_joined_s or 0.0)
        if self._grace_s is not None and waited_s >= self._grace_s:
            return True
        if self.wanted is not None:
            return bool(self._before) or len(self.eligible) >= self.wanted
        # One that came first of many must not load what is to be shared among all of them.
        survives = not self._before.isdisjoint(there)
        return survives or len(there) >= self._most or now_s - self._last_joined_s >= self._settle_s

    def dissolve(self) -> None:
        """The generation has ended."""
        self.members = frozenset()

    def convene(self) -> frozenset[int]:
        """The members of a new generation: who was a member before, then who has the lowest number."""
        ranked = sorted(self._candidates, key=lambda worker: (worker not in self._before, worker))
        self.members = frozenset(ranked[: self._most if self.wanted is None else self.wanted])
        self._gathering_since_s = None
        return self.members

    def place(self) -> None:
        """The members have slots now: if some are lost, the others go on without them."""
        self._before = self.members


def place(n_slots: int, workers: Iterable[int], before: Mapping[int, int]) -> dict[int, int]:
    """Owners by slot. A slot stays where it was `before` unless that worker has its share of the slots up to it.

    Any number of first slots is spread evenly, too, because an operator with fewer partitions than slots uses only the
    first slots. Load does not count.
    """
    members = sorted(workers)
    counts = dict.fromkeys(members, 0)
    had = {worker: list(before.values()).count(worker) for worker in members}
    owners: dict[int, int] = {}
    for slot in range(n_slots):
        share = -(-(slot + 1) // len(members))
        owner = before.get(slot)
        if owner is None or owner not in counts or counts[owner] >= share:
            owner = min(members, key=lambda worker: (counts[worker], had[worker], worker))
        owners[slot] = owner
        counts[owner] += 1
    return owners
