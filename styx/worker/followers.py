"""Who follows the changes of one worker's epochs: what each is given next, and when it is dropped. It is as pure as the
worker: its host tells it who follows, and carries on what it gives.

A follower gets the changes of each closed epoch once, in order, and is told how far they go when an epoch has none. It
may have a few messages that it has not said to have taken; meanwhile what comes stays in the log of the worker, which
all followers share. Nobody waits for one: when the log has dropped what it is to get next, it is dropped with
`SnapshotTooOld`. It belongs to one generation: when that ends, it gets what the generation has closed, and is told to
ask again, behind the last epoch it has.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from styx.model.changes import FROM_NOW, EpochChanges, TableChanges, followed
from styx.model.limits import MIB
from styx.worker.change_log import ChangeLog
from styx.worker.generation import Generation
from styx.worker.reads import TOO_OLD, UNAVAILABLE, is_committing, last_closed
from styx.worker.worker import Worker

FOLLOWERS_MAX: Final = 256
"""Those of one worker."""
UNTAKEN_MAX: Final = 8
"""Messages with changes that a follower has not taken yet."""
MESSAGE_BYTES: Final = MIB
"""What the changes of one message count, but for one epoch with more."""
NOT_REACHED: Final = "bad_request"
"""The code of a follower of epochs that are far from now."""
_NO_LOG: Final = -2
"""In place of a log's last epoch: there is none, or its worker has not loaded its state."""
_AHEAD_MAX: Final = 1
"""An epoch may be known elsewhere before it has begun here: that of a worker that is one ahead."""

_Cut = dict[tuple[ChangeLog, int, str, str | None], tuple[int, list[EpochChanges]]]


class Followed(NamedTuple):
    """All changes for the follower `id` up to the end of `through`: the first one says where it begins, without any."""

    id: Any
    through: int
    epochs: list[EpochChanges]


class FollowEnded(NamedTuple):
    """The follower `id` gets nothing more: `code`, `kind` (the error's type) and `message` are as those of a reply."""

    id: Any
    code: str
    kind: str
    message: str


class _Follower:
    """`after`: it has all up to the end of this epoch. `begun`: it was told where it begins. `untaken`: messages. `log`
    is that of its generation.
    """

    __slots__ = ("after", "begun", "id", "log", "operator", "table", "untaken")

    def __init__(self, its_id: Any, log: ChangeLog, operator: str, table: str | None, after: int) -> None:
        self.id = its_id
        self.log = log
        self.operator = operator
        self.table = table
        self.after = after
        self.begun = False
        self.untaken = 0


class Followers:
    """Those of one worker. Who follows has an id of its own, and gets one `FollowEnded` unless it leaves before.

    `dropped` counts those for which the log did not last, at the beginning or later.
    """

    def __init__(self, worker: Worker) -> None:
        self.dropped = 0
        self._worker = worker
        self._generation: Generation = worker.generation_data
        self._by_id: dict[Any, _Follower] = {}
        self._ended: list[FollowEnded] = []
        self._told = (_NO_LOG, False)

    def __len__(self) -> int:
        """How many follow."""
        return len(self._by_id)

    @property
    def backlog_bytes(self) -> int:
        """What the changes that are kept for followers count."""
        log = self._worker.generation_data.changes
        return 0 if log is None else log.n_bytes

    # Who follows -------------------------------------------------------------------------------------------

    def follow(self, its_id: Any, operator: str, table: str | None, after: int) -> None:
        """Somebody wants the changes behind the end of epoch `after`, or `FROM_NOW`; `operator` and `table` are as in
        `followed`.
        """
        assert its_id not in self._by_id, "two followers have one id"
        self._go_with_generation()
        if len(self._by_id) >= FOLLOWERS_MAX:
            text = f"{FOLLOWERS_MAX} follow the changes here; try again soon"
            self._ended.append(FollowEnded(its_id, "overloaded", "RequestRejected", text))
            return
        worker, generation = self._worker, self._generation
        log = generation.changes or generation.follow(last_closed(worker), is_committing(worker))
        self._by_id[its_id] = _Follower(its_id, log, operator, table, after)
        self._count()

    def leave(self, its_id: Any) -> None:
        """It does not follow any more; it may have ended already."""
        if self._by_id.pop(its_id, None) is not None:
            self._count()

    def taken(self, its_id: Any, messages: int) -> None:
        """It has taken so many messages with changes."""
        follower = self._by_id.get(its_id)
        if follower is not None:
            follower.untaken -= messages
            self._told = (_NO_LOG, True)

    def ids(self) -> list[Any]:
        """Those who follow."""
        return list(self._by_id)

    def _count(self) -> None:
        log = self._generation.changes
        if log is not None:
            log.followers = sum([follower.log is log for follower in self._by_id.values()])
        self._told = (_NO_LOG, True)

    def _go_with_generation(self) -> None:
        """Whoever follows the generation that has ended gets the rest of it. Its workers have other slots now, so then
        it asks again; who has not got so far when the next one ends asks at once.
        """
        generation = self._worker.generation_data
        if generation is not self._generation:
            before, self._generation = self._generation.changes, generation
            for follower in list(self._by_id.values()):
                if follower.log is not before:
                    self._ask_again(follower)
            self._told = (_NO_LOG, True)

    def _ask_again(self, follower: _Follower) -> None:
        self._end(follower, UNAVAILABLE, "NotSent", "the worker has begun a new generation: ask again")

    # What they get -----------------------------------------------------------------------------------------

    @property
    def runnable(self) -> bool:
        """Whether `run` may have something."""
        if self._ended:
            return True
        if not self._by_id:
            return False
        log = self._worker.generation_data.changes
        if self._worker.generation_data is not self._generation:
            return True
        if log is None or log.begun is None:
            return self._told[1] and any(follower.log is not log for follower in self._by_id.values())
        return self._told[1] or log.last != self._told[0]

    def run(self) -> list[Followed | FollowEnded]:
        """What there is for everybody now, one message each at most."""
        self._go_with_generation()
        given: list[Followed | FollowEnded] = []
        now, more = self._generation.changes, False
        cut: _Cut = {}
        for follower in list(self._by_id.values()):
            log = follower.log
            found = None if log.begun is None else self._next(follower, log, log.begun, cut)
            if found is not None:
                given.append(found)
                more = more or log is not now or (follower.after < log.last and follower.untaken < UNTAKEN_MAX)
            elif log is not now and follower.id in self._by_id and (not follower.begun or follower.after >= log.last):
                self._ask_again(follower)
        self._told = (_NO_LOG if now is None or now.begun is None else now.last, more)
        ended, self._ended = self._ended, []
        return [*given, *ended]

    def _next(self, follower: _Follower, log: ChangeLog, begun: int, cut: _Cut) -> Followed | None:
        if not follower.begun and not self._begins(follower, log, begun):
            return None
        if follower.begun and follower.after < begun:
            self._too_old(follower, begun, "they came faster than they were taken, and")
            return None
        if not follower.begun:
            follower.begun = True
            return Followed(follower.id, follower.after, [])
        if follower.after >= log.last or follower.untaken >= UNTAKEN_MAX:
            return None
        wanted = (log, follower.after, follower.operator, follower.table)
        known = cut.get(wanted)
        if known is None:
            through, epochs = log.behind(follower.after, MESSAGE_BYTES)
            known = cut[wanted] = (through, self._of(epochs, follower))
        follower.after, epochs = known
        follower.untaken += bool(epochs)
        return Followed(follower.id, follower.after, epochs)

    def _begins(self, follower: _Follower, log: ChangeLog, begun: int) -> bool:
        """Whether it begins; it is told why if it cannot, and waits for the next epoch to close if it may not yet."""
        if follower.after == FROM_NOW:
            if log.last < begun:
                return False  # The epoch that closes next is not told: whoever reads now would miss what it changes.
            follower.after = log.last
        elif follower.after < begun:
            self._too_old(follower, begun, "they")
            return False
        elif follower.after > log.last and log is self._generation.changes:
            # Also before the worker serves: a follower comes back to a restored deployment while that still begins.
            last = max(self._worker.epoch, self._worker.recorded_until)
            if follower.after > last + _AHEAD_MAX:
                text = (
                    f"changes from epoch {follower.after + 1} on are wanted, and the last one is {last}: "
                    "is it another deployment, or restored from a backup? Begin anew"
                )
                self._end(follower, NOT_REACHED, "RequestRejected", text)
                return False
        return True

    def _of(self, epochs: list[EpochChanges], follower: _Follower) -> list[EpochChanges]:
        """What of some epochs' changes is for the follower."""
        if not follower.operator:
            return epochs
        app = self._generation.app
        found: list[EpochChanges] = []
        for epoch in epochs:
            tables: list[TableChanges] = [
                each for each in epoch.tables if followed(app, follower.operator, follower.table, each.name)
            ]
            if tables:
                found.append(epoch if len(tables) == len(epoch.tables) else EpochChanges(epoch.epoch, 0, tables))
        return found

    def _too_old(self, follower: _Follower, begun: int, what: str) -> None:
        self.dropped += 1
        text = (
            f"the changes of epoch {follower.after + 1} are wanted; {what} are kept from epoch {begun + 1} on: read "
            "the state, and follow from there"
        )
        self._end(follower, TOO_OLD, "SnapshotTooOld", text)

    def _end(self, follower: _Follower, code: str, kind: str, message: str) -> None:
        del self._by_id[follower.id]
        self._ended.append(FollowEnded(follower.id, code, kind, message))
        self._count()
