"""The change feed in the simulator: each worker of each generation is followed from the moment at which it begins to
load its state, behind every step that it takes.

All parts of one slot and epoch must be the same, whoever closes the epoch, in whichever generation: it is final. Parts
of all slots and epochs must be there, and laid over each other they must be the state at the end. Which plans have
followers is decided by their seed, so that in others versions begin with a read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random
from typing import TYPE_CHECKING, Any, Final

from styx.model.changes import FROM_NOW
from styx.worker.followers import Followed, Followers
from styx.worker.reads import last_closed
from styx.worker.worker import Worker

if TYPE_CHECKING:
    from proof.simulation.plan import SimulationPlan
    from proof.simulation.worker_process import WorkerProcess

Part = dict[tuple[str, Any], bytes | None]
_KEEPING: Final = -1
"""The id of a follower that is there before the state is loaded, and is not looked at."""
_SHARE: Final = 0.5
"""Of the plans with reads outside the log, those that have followers."""


class ChangesSeen:
    """All that followers have been given, by epoch and slot."""

    def __init__(self) -> None:
        self.parts: dict[tuple[int, int], Part] = {}

    def take(self, epoch: int, slot: int, part: Part) -> None:
        """A worker gives the changes of one of its slots."""
        known = self.parts.setdefault((epoch, slot), part)
        assert known == part, f"epoch {epoch} of slot {slot} is given as {part}, and was as {known}"

    def check(self, state: Mapping[tuple[str, Any], bytes], workers: Iterable[Worker], n_slots: int) -> None:
        """Holds all that was given against the state at the end, which these workers have. An epoch may still be open
        that is there for marks alone.
        """
        last = min(map(last_closed, workers))
        found: dict[tuple[str, Any], bytes] = {}
        for epoch in range(last + 1):
            for slot in range(n_slots):
                assert (epoch, slot) in self.parts, f"nobody was given epoch {epoch} of slot {slot}"
                for place, value in self.parts[epoch, slot].items():
                    assert found.get(place) != value, f"{place} has not changed in epoch {epoch}"
                    if value is None:
                        del found[place]
                    else:
                        found[place] = value
        assert found == state, f"the changes up to epoch {last} are not the state"


def changes_seen(plan: SimulationPlan) -> ChangesSeen | None:
    """Where a simulation's followers put what they are given; None if it has none."""
    follows = plan.outside and Random(f"followers {plan.seed}").random() < _SHARE
    return ChangesSeen() if follows else None


class WorkerFollower:
    """Follows one worker, generation by generation."""

    def __init__(self, host: WorkerProcess, seen: ChangesSeen) -> None:
        self._core = host.core
        self._seen = seen
        self._feed = Followers(host.core)
        self._through: dict[int, int] = {}
        self._slots: dict[int, tuple[int, ...]] = {}
        self._generation = self._following = -1

    def look(self) -> None:
        """Behind a step."""
        core, feed = self._core, self._feed
        if core.generation > self._generation:
            self._generation = core.generation
            feed.leave(_KEEPING)
            feed.follow(_KEEPING, "", None, FROM_NOW)  # from the first moment there is a log
        log = core.generation_data.changes
        if log is not None and log.begun is not None and self._following < core.generation:
            self._following = core.generation
            feed.follow(core.generation, "", None, log.begun)
        while feed.runnable:
            for given in feed.run():
                if isinstance(given, Followed):
                    if given.id != _KEEPING:
                        self._take(given)
                    if given.epochs:
                        feed.taken(given.id, 1)
                else:
                    assert given.code == "unavailable", given

    def _take(self, given: Followed) -> None:
        through = self._through.get(given.id)
        self._through[given.id] = given.through
        if through is None:
            assert not given.epochs
            self._slots[given.id] = tuple(self._core.slots)
            return
        parts: dict[tuple[int, int], Part] = {
            (epoch, slot): {} for epoch in range(through + 1, given.through + 1) for slot in self._slots[given.id]
        }
        for epoch in given.epochs:
            for table in epoch.tables:
                changed = zip(table.keys, table.values, strict=True)
                parts[epoch.epoch, table.slot].update({(table.name, key): value for key, value in changed})
        for (number, slot), part in parts.items():
            self._seen.take(number, slot, part)
