"""Notes on transactions as they end: exceptions that the app did not declare, and the messages of `ctx.log`; and on
those that a lock phase carries into the next epoch.

Notes are kept with a transaction's run and count only when its end is final, so that each is reported once, from the
run that counted. Of an exception only texts are kept, never the exception, its traceback or a frame. Only an exception
or a message costs time, and frames are collected for a bounded number of exceptions at a time. Notes never change an
outcome; the worker's host writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from styx.errors import InTransactionError, KeyExists, UnknownEntity
from styx.model.execution import aborted, rejection
from styx.model.function_log import Line
from styx.model.user_frames import Frame, UserFrames
from styx.protocol.frames import Failure
from styx.worker.invocation import Invocation, failure_at

if TYPE_CHECKING:
    from styx.worker.changed_call import ChangedCall
    from styx.worker.footprint import Footprint
    from styx.worker.root import RootTransaction
    from styx.worker.slot import Slot

CAPTURES_MAX: Final = 100
"""Exceptions whose frames are looked at until `Notes.refill`; further ones are counted."""
ABORTS_MAX: Final = 1_000
"""Aborts that wait for the host to take them; further ones are counted."""
CARRIED_MAX: Final = 100
"""Carried transactions that wait for the host to take them, with what changed; further ones are counted."""
LINES_MAX: Final = 100_000
"""Lines that wait for the host to take them; further ones are counted."""


class Raised(NamedTuple):
    """The first exception in serial order of one run on one slot; `frames` are None if they were not looked at."""

    failure: Failure
    invocation: tuple[str, Any, str]
    declared: bool
    frames: tuple[Frame, ...] | None


class AbortNote(NamedTuple):
    """A transaction that ended in an exception. `replayed`: the epoch ran before, and its note may have been lost."""

    tid: int
    epoch: int
    replayed: bool
    operator: str
    key: Any
    function: str
    type: str
    message: str
    frames: tuple[Frame, ...]


class LineNote(NamedTuple):
    """A line that a function logged, of a transaction that has ended. `aborted`: the transaction had no effect."""

    tid: int
    epoch: int
    replayed: bool
    aborted: bool
    line: Line


class CarriedNote(NamedTuple):
    """A transaction whose root is (operator, key, function) was carried for the `times`-th time. `changed` is the call
    that changed on this worker; None if another worker's slot saw it, or if an exception was not final.
    """

    tid: int
    epoch: int
    times: int
    operator: str
    key: Any
    function: str
    changed: ChangedCall | None


class Notes:
    """The notes since the last `take`: `aborts`, `lines`, and how many of each were left out. `carried` and
    `carried_left_out` are those since the last `take_carried`; of the latter only (operator, function) and `times`.

    `all_aborts`: aborts by declared exceptions, which the app raises on purpose, are noted as well.
    """

    def __init__(self, all_aborts: bool = False) -> None:
        self.all_aborts = all_aborts
        self.aborts: list[AbortNote] = []
        self.lines: list[LineNote] = []
        self.aborts_left_out = 0
        self.lines_left_out = 0
        self.carried: list[CarriedNote] = []
        self.carried_left_out: dict[tuple[str, str, int], int] = {}
        self._captures = CAPTURES_MAX
        self._frames = UserFrames()
        self._epoch = -1
        self._answered: Collection[int] | None = None

    @property
    def empty(self) -> bool:
        """Whether there is nothing to take."""
        return not (self.aborts or self.lines or self.aborts_left_out or self.lines_left_out or self.carried)

    @property
    def replaying(self) -> bool:
        """Whether the open epoch ran before."""
        return self._answered is not None

    def refill(self) -> None:
        """Allows `CAPTURES_MAX` exceptions to be looked at again. The host calls it now and then."""
        self._captures = CAPTURES_MAX

    # A run -------------------------------------------------------------------------------------------------

    def raised(self, invocation: Invocation, error: BaseException, failure: Failure) -> None:
        """Notes the exception that ended an invocation."""
        footprint = invocation._footprint
        before = footprint.raised
        if before is not None and before.failure.place < failure.place:
            return
        declared, frames = False, None
        try:
            declared = not self.all_aborts and self._is_declared(error)
            if not declared and self._captures > 0:
                self._captures -= 1
                frames = self._frames.of(error) or self._frames.of_definition(invocation._spec.func)
        except BaseException:  # noqa: BLE001 - the exception's own code, or its class's: it can raise anything
            frames = ()
        spec = invocation._spec
        footprint.raised = Raised(failure, (spec.operator, invocation._key, spec.name), declared, frames)

    def forget(self, footprint: Footprint) -> None:
        """A run of a transaction did not count: another one takes its place."""
        raised = footprint.raised
        if raised is not None and raised.frames is not None:
            self._captures += 1

    def _is_declared(self, error: BaseException) -> bool:
        if isinstance(error, InTransactionError):
            return isinstance(error, KeyExists | UnknownEntity)
        return self._frames.raised_on_purpose(error)

    # Ends --------------------------------------------------------------------------------------------------

    def begin(self, epoch: int, answered: Collection[int] | None) -> None:
        """Begins `epoch`. In a replay `answered` are the TIDs whose notes were written before; otherwise it is None."""
        self._epoch = epoch
        self._answered = answered

    def at_commit(
        self,
        slots: Iterable[Slot],
        aborted: set[int],
        left: Collection[int],
        roots: Mapping[int, RootTransaction],
    ) -> None:
        """Takes the ends of an epoch's transactions: those in `aborted` raised, those in `left` have not ended, all
        others committed.
        """
        for slot in slots:
            for tid in sorted(aborted & slot.footprints.keys()):
                footprint = slot.footprints[tid]
                root = roots.get(tid)
                raised = footprint.raised
                # An exception of another branch comes later than the one that ended the transaction. Only the root
                # knows all of them.
                counts = root is None or raised is None or root.failure is None or raised.failure == root.failure
                self._ended(footprint, True, raised if counts else None)
            for tid, footprint in slot.footprints.items():
                if footprint.lines is not None and tid not in left:
                    self._ended(footprint, False, None)

    def at_lock_end(self, ended: Iterable[tuple[Footprint, Failure | None]]) -> None:
        """Takes the ends of transactions of the lock phase, each with its failure or None."""
        for footprint, failure in ended:
            raised = footprint.raised
            counts = raised is not None and failure is not None and raised.failure.place == failure.place
            if failure is not None and footprint.lines is not None:
                # What other slots have run beside the failed part comes later in the serial execution.
                footprint.lines.cut(failure.place)
            self._ended(footprint, failure is not None, raised if counts else None)

    def at_read_end(self, footprint: Footprint, failure: Failure | None, epoch: int) -> None:
        """Takes the end of a read outside the log, or of a part of one: it has read at the end of `epoch`."""
        raised = footprint.raised
        counts = raised is not None and failure is not None and raised.failure.place == failure.place
        open_epoch, answered, self._epoch, self._answered = self._epoch, self._answered, epoch, None
        self._ended(footprint, failure is not None, raised if counts else None)
        self._epoch, self._answered = open_epoch, answered

    def _ended(self, footprint: Footprint, aborted: bool, raised: Raised | None) -> None:
        tid, epoch, answered = footprint.tid, self._epoch, self._answered
        if answered is not None and tid in answered:
            return
        replayed = answered is not None
        if raised is not None and not raised.declared:
            if raised.frames is None or len(self.aborts) >= ABORTS_MAX:
                self.aborts_left_out += 1
            else:
                kind, message = raised.failure.type, raised.failure.message
                note = AbortNote(tid, epoch, replayed, *raised.invocation, kind, message, raised.frames)
                self.aborts.append(note)
        lines = footprint.lines
        if lines is None:
            return
        self.lines_left_out += lines.left_out
        room = max(0, LINES_MAX - len(self.lines))
        in_order = sorted(lines.lines, key=_place)
        self.lines_left_out += max(0, len(in_order) - room)
        self.lines.extend(LineNote(tid, epoch, replayed, aborted, line) for line in in_order[:room])

    def carry(self, root: RootTransaction, changed: Callable[[int], ChangedCall | None]) -> None:
        """Notes that a lock phase has carried a transaction; `changed` finds out what for. A replay notes nothing."""
        function = root.function
        if function is None or self.replaying:
            return
        if len(self.carried) < CARRIED_MAX:
            place = (root.tid, self._epoch, root.carried, function.operator, root.key, function.name)
            self.carried.append(CarriedNote(*place, changed(root.tid)))
        else:
            left_out = (function.operator, function.name, root.carried)
            self.carried_left_out[left_out] = self.carried_left_out.get(left_out, 0) + 1

    def take_carried(self) -> tuple[list[CarriedNote], dict[tuple[str, str, int], int]]:
        """Returns (notes, how many were left out by operator, function and times) since the last call of this."""
        taken = (self.carried, self.carried_left_out)
        self.carried, self.carried_left_out = [], {}
        return taken

    def take(self) -> tuple[list[AbortNote], list[LineNote], int, int]:
        """Returns (aborts, lines, aborts left out, lines left out) since the last `take`."""
        taken = (self.aborts, self.lines, self.aborts_left_out, self.lines_left_out)
        self.aborts, self.lines = [], []
        self.aborts_left_out = self.lines_left_out = 0
        return taken


def failure_by(notes: Notes | None, invocation: Invocation, error: BaseException) -> Failure:
    """Notes that an invocation raised `error`, and returns the failure."""
    failure = failure_at(invocation, aborted(error))
    if notes is not None and not invocation._spec.client_data:
        notes.raised(invocation, error, failure)
    return failure


def refusal_by(notes: Notes | None, invocation: Invocation, error: InTransactionError) -> Failure:
    """The failure of an invocation that could not start. The mistake is the client's for a root, otherwise
    the app's.
    """
    if invocation._path:
        return failure_by(notes, invocation, error)
    return failure_at(invocation, rejection(error))


def _place(line: Line) -> tuple[bytes, bytes]:
    return line.chain, line.path
