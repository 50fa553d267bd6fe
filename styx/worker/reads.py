"""Reads outside the log, on one worker: which of them may run now, at the end of which epoch, and what becomes of them.

A read never enters an epoch: it is not sequenced, logged or replayed, and no transaction waits for it. It runs between
the steps of the protocol, a slice at a time, on views of the worker's slots at the end of one epoch. With the first
read the worker begins to keep versions, which the views need while an epoch commits.

- `latest` is the newest epoch that has closed here. Every epoch's end is a cut through all operators and workers that
  has each transaction whole, with all that it depends on.
- A read `at_least` an epoch waits until that one has closed: who has seen a reply or a read of an epoch sees nothing
  older from then on.
- A read `at` an epoch sees exactly that one.
- A `strict` read sees every transaction that was answered before the read was asked for. See `answered_epoch` for an
  engine that nobody can take over, and `fence_epoch` for a worker among others.

It is as pure as the worker: its host tells it what was asked, gives it time to run, and carries the outcomes on.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import KeysView
from typing import Any, Final

import msgspec

from styx.errors import FunctionTooLong, InTransactionError, describe
from styx.messages import Request
from styx.model.execution import rejection, resolve_request
from styx.model.freshness import SESSION, STRICT, Freshness
from styx.model.function_spec import MadeCall
from styx.protocol.frames import CallSpec
from styx.protocol.reads import PartEnded, PartFailed, PartReturned, ReadPart
from styx.worker.admission import UNPLACED
from styx.worker.epoch_view import SlotView, Views
from styx.worker.events import Step
from styx.worker.generation import Generation
from styx.worker.outbox import made_call
from styx.worker.own_variables import OwnVariables
from styx.worker.read_run import ReadRun
from styx.worker.standing import Placing
from styx.worker.worker import Worker

TOO_OLD: Final = "snapshot_too_old"
"""The code of a read whose epoch the versions do not reach."""
NOT_READ_ONLY: Final = "not_read_only"
"""The code of a read of a function that may write."""
UNAVAILABLE: Final = "unavailable"
"""The code of a read that can be asked again, here or of another worker."""
_OPEN: Final = (Step.EXECUTING, Step.VALIDATING, Step.LOCKING, Step.LOCAL)
_UNANSWERED: Final = (Step.EXECUTING, Step.VALIDATING)
_BEGINNING: Final = -1
"""The epoch at whose end nothing has been written."""
_NONE: Final = -2
"""No epoch: below all that can be read."""
_CANCELLED_MAX: Final = 100
"""Cancelled reads that are still among those that wait, beside as many as are under way."""
_ATTEMPTS_MAX: Final = 4
"""How often a read that may read any newer epoch begins, if versions do not last until its end."""


class ReadWanted(msgspec.Struct, frozen=True):
    """A read that is asked for under `id`: `request` names function, entity and arguments.

    `number`: from `READ_NUMBERS` on, and no other read's; it seeds `ctx.random` and the ids, in place of a TID.
    `timestamp_us`: what `ctx.now()` gives. `at_least`: the read waits for this epoch; `at`: it reads at the end of this
    one. `fenced`: it waits behind a fence first (`fence_epoch`).
    """

    id: Any
    request: Request
    number: int
    timestamp_us: int
    at_least: int = _BEGINNING
    at: int | None = None
    fenced: bool = False


class ReadEnded(msgspec.Struct, frozen=True):
    """The end of what was asked for under `id`: a read, or a part of another worker's. `epoch`: at the end of which it
    has read, -1 also if it has read nothing.
    """

    id: Any
    epoch: int
    end: PartEnded


class AskPart(msgspec.Struct, frozen=True):
    """The read or part `id` goes on when the owner of the slot has run `part`, and `Reads.answer` has its end."""

    id: Any
    part: ReadPart


class _Reading:
    """What was asked for under `id`. `run` is None until its epoch has closed here, and `epoch` is `_NONE` until it is
    chosen. `attempts` counts how often it has begun. `fence`: it waits for the record of a later epoch than this one.
    """

    __slots__ = ("attempts", "epoch", "fence", "id", "part", "run", "wanted")

    def __init__(self, its_id: Any, wanted: ReadWanted | None, part: ReadPart | None, epoch: int) -> None:
        self.id = its_id
        self.wanted = wanted
        self.part = part
        self.epoch = epoch
        self.run: ReadRun | None = None
        self.attempts = 0
        self.fence: int | None = None


class Reads:
    """The reads of one worker. Who asks gives each an id of its own, and gets one `ReadEnded` for it, unless it is
    cancelled.

    `started` counts the reads and parts that have begun, `too_old` those that have ended for lack of versions.
    """

    def __init__(self, worker: Worker) -> None:
        self.started = 0
        self.too_old = 0
        self._worker = worker
        self._generation: Generation = worker.generation_data
        self._by_id: dict[Any, _Reading] = {}
        self._waiting: list[tuple[int, int, _Reading]] = []
        self._asked = 0
        self._fenced: deque[_Reading] = deque()
        self._ready: deque[_Reading] = deque()
        self._dropped: list[ReadRun] = []
        self._variables = OwnVariables()
        self._ended: list[ReadEnded | AskPart] = []
        self._views: tuple[int, Views] = (_NONE, {})
        self._placing = self._new_placing()

    def __len__(self) -> int:
        """How many are under way."""
        return len(self._by_id)

    @property
    def ids(self) -> KeysView[Any]:
        """The ids of those that are under way."""
        return self._by_id.keys()

    # What is asked -----------------------------------------------------------------------------------------

    def ask(self, wanted: ReadWanted) -> None:
        """A read is wanted."""
        self._follow()
        at_least = wanted.at_least if wanted.at is None else wanted.at
        reading = _Reading(wanted.id, wanted, None, _NONE if wanted.at is None else wanted.at)
        if not wanted.fenced:
            self._take(reading, at_least)
            return
        assert reading.id not in self._by_id, "two reads have one id"
        self._by_id[reading.id] = reading
        reading.fence = fence_epoch(self._worker)
        self._fenced.append(reading)

    def ask_part(self, its_id: Any, part: ReadPart) -> None:
        """Another worker asks for a part of its read: an epoch may have closed there and not yet here."""
        self._follow()
        self._take(_Reading(its_id, None, part, part.epoch), part.epoch)

    def answer(self, its_id: Any, end: PartEnded) -> None:
        """The part that was asked of another worker has ended; None waits for it any more if its read was cancelled."""
        self._follow()
        reading = self._by_id.get(its_id)
        if reading is None or reading.run is None:
            return
        if type(end) is PartFailed and end.code == TOO_OLD:
            self._too_old(reading, end)
        else:
            reading.run.answered(end)
            self._ready.append(reading)

    def cancel(self, its_id: Any) -> None:
        """Nobody waits for it any more."""
        reading = self._by_id.pop(its_id, None)
        if reading is not None:
            self._drop(reading)
        most = 2 * len(self._by_id) + _CANCELLED_MAX
        if len(self._waiting) > most:
            self._waiting = [each for each in self._waiting if self._by_id.get(each[2].id) is each[2]]
            heapq.heapify(self._waiting)
        if len(self._fenced) > most:
            self._fenced = deque([each for each in self._fenced if self._by_id.get(each.id) is each])

    def _drop(self, reading: _Reading) -> None:
        """Its run, if it has one, ends without a result when `run` is next called: its functions may have `finally`
        blocks, which run in a pass as all code of the app does.
        """
        if reading.run is not None:
            self._dropped.append(reading.run)
            reading.run = None

    def _follow(self) -> None:
        """Notes that the worker has begun a new generation, if it has: what comes from now on is of that one."""
        generation = self._worker.generation_data
        if generation is not self._generation:
            self._new_generation(generation)

    def _new_generation(self, generation: Generation) -> None:
        """What has begun ends with the old generation, and whoever asks again finds the same epochs. So do parts, whose
        reads have ended elsewhere. What still waits for its epoch goes on.
        """
        self._generation, self._placing = generation, self._new_placing()
        self._views = (_NONE, {})
        for reading in self._fenced:
            reading.fence = fence_epoch(self._worker)
        for reading in list(self._by_id.values()):
            if reading.run is not None or reading.part is not None:
                self._drop(reading)
                self._fail(reading, UNAVAILABLE, "NotSent", "the worker has begun a new generation: ask again")

    def _take(self, reading: _Reading, at_least: int) -> None:
        assert reading.id not in self._by_id, "two reads have one id"
        self._by_id[reading.id] = reading
        self._wait(reading, at_least)

    def _wait(self, reading: _Reading, at_least: int) -> None:
        self._asked += 1
        heapq.heappush(self._waiting, (at_least, self._asked, reading))

    # Fences ------------------------------------------------------------------------------------------------

    @property
    def epoch_wanted(self) -> int:
        """The last epoch whose record a read waits for, -1 if none does: the worker is to begin it, although it has
        nothing to do. None of the present generation is earlier than another that waits longer.
        """
        last = self._fenced[-1].fence if self._fenced else None
        return _BEGINNING if last is None or self._generation is not self._worker.generation_data else last + 1

    @property
    def _fence_is_passed(self) -> bool:
        if not self._fenced:
            return False
        fence = self._fenced[0].fence
        if fence is None:
            return fence_epoch(self._worker) is not None
        return self._generation.durable > fence

    def _pass_fences(self) -> None:
        """Those whose record is durable wait no more than any other read does."""
        fenced = self._fenced
        while self._fence_is_passed:
            reading = fenced[0]
            if reading.fence is None:
                for each in fenced:
                    each.fence = fence_epoch(self._worker)
                continue
            fenced.popleft()
            if self._by_id.get(reading.id) is reading and reading.wanted is not None:
                self._wait(reading, max(reading.fence, reading.wanted.at_least))

    # Running -----------------------------------------------------------------------------------------------

    @property
    def runnable(self) -> bool:
        """Whether there is something for `run` to do now."""
        if self._ready or self._ended or self._dropped or self._fence_is_passed:
            return True
        if self._generation is not self._worker.generation_data and self._by_id:
            return True
        return bool(self._waiting) and self._waiting[0][0] <= closed_epoch(self._worker)

    def run(self, invocations: int) -> list[ReadEnded | AskPart]:
        """Runs about as many functions, and gives what has come of it, in order."""
        self._follow()
        while self._dropped:
            self._dropped.pop().drop()
        self._pass_fences()
        self._begin_those_that_may()
        left = invocations
        while self._ready and left > 0:
            left = self._variables.run(self._run, left)
        return self._take_ended()

    def _take_ended(self) -> list[ReadEnded | AskPart]:
        ended, self._ended = self._ended, []
        return ended

    def _begin_those_that_may(self) -> None:
        closed, waiting = closed_epoch(self._worker), self._waiting
        if not waiting or waiting[0][0] > closed:
            return
        oldest = self._keeps_from(closed)
        while waiting and waiting[0][0] <= closed:
            reading = heapq.heappop(waiting)[2]
            if self._by_id.get(reading.id) is not reading:
                continue  # it was cancelled
            if reading.epoch == _NONE and oldest > closed:
                # Versions are kept from the end of the open epoch on, which has begun to commit.
                self._wait(reading, oldest)
            else:
                if reading.epoch == _NONE:
                    reading.epoch = closed
                self._begin(reading)

    def _keeps_from(self, closed: int) -> int:
        """The first epoch that can be read; keeping begins if it has not."""
        versions = self._generation.versions
        if versions.oldest is None:
            versions.begin(closed if self._worker.reached not in (Step.LOCKING, Step.LOCAL) else closed + 1)
            for slot in self._generation.slots.values():
                slot.state.keep_versions(versions)
        oldest = versions.oldest
        assert oldest is not None
        return oldest

    def _begin(self, reading: _Reading) -> None:
        self.started += 1
        reading.attempts += 1
        if not self._reaches(reading):
            return
        part, generation = reading.part, self._generation
        if part is None:
            whole = self._whole(reading)
            if whole is None:
                return
            part, call = whole
        else:
            spec = CallSpec(part.synchronous, part.slot, part.operator, part.function, part.key, part.params)
            call = made_call(generation.app, spec)
        if part.slot not in generation.slots:
            self._fail(reading, UNAVAILABLE, "NotSent", f"slot {part.slot} is not on this worker: ask its owner")
            return
        views = self._views_at(part.epoch)
        reading.run = ReadRun(generation.executor, generation.notes, self._variables, part, call, views)
        self._ready.append(reading)

    def _whole(self, reading: _Reading) -> tuple[ReadPart, MadeCall] | None:
        """The whole read as a part; None if it has failed before anything ran."""
        wanted, generation = reading.wanted, self._generation
        assert wanted is not None
        request = wanted.request
        try:
            slot_of = self._placing.slot_of
            target = resolve_request(generation.app, request, generation.limits, generation.n_slots, slot_of)
        except FunctionTooLong as error:
            self._fail(reading, UNPLACED, *describe(error))
        except InTransactionError as error:
            self._fail(reading, *rejection(error))
        except BaseException as error:  # noqa: BLE001 - a request costs only itself
            self._fail(reading, "bad_request", *describe(error))
        else:
            function, key, slot = target.function, target.key, target.slot
            if function.read_only:
                place = (wanted.number, wanted.timestamp_us, reading.epoch, slot)
                part = ReadPart(*place, function.operator, function.called_as, key, request.params)
                return part, MadeCall(False, slot, function, key, request.params)  # nobody waits as for a call
            text = f"{function.operator}.{function.name} may write: register it with read_only=True, or call it"
            self._fail(reading, NOT_READ_ONLY, "NotReadOnly", text)
        return None

    def _views_at(self, epoch: int) -> Views:
        known, views = self._views
        if known != epoch:
            generation = self._generation
            views = {index: SlotView(slot, epoch, generation.n_slots) for index, slot in generation.slots.items()}
            self._views = (epoch, views)
        return views

    def _run(self, invocations: int) -> int:
        """Runs until about as many functions have run, or one has set a variable. Gives how many are left."""
        ready, variables = self._ready, self._variables.shared
        while ready and invocations > 0 and not len(variables):
            reading = ready.popleft()
            run = reading.run
            if self._by_id.get(reading.id) is not reading or run is None or not self._reaches(reading):
                continue
            before = run.calls
            end = run.go_on(invocations)
            invocations = 0 if run.lists else invocations - max(1, run.calls - before)
            if end is None:
                ready.append(reading)
            elif type(end) is ReadPart:
                self._ended.append(AskPart(reading.id, end))
            else:
                assert type(end) is PartReturned or type(end) is PartFailed
                self._ends(reading, end)
        return invocations

    def _reaches(self, reading: _Reading) -> bool:
        """Whether its epoch can still be read; if not, it begins again at a newer one, or fails."""
        epoch, oldest = reading.epoch, self._generation.versions.oldest
        assert oldest is not None
        if epoch >= oldest:
            return True
        text = (
            f"the state at the end of epoch {epoch} is not kept any more: the oldest epoch here is {oldest} "
            "(Limits.versions_max, Limits.version_bytes_max). Read at a later epoch"
        )
        self._too_old(reading, PartFailed(TOO_OLD, "SnapshotTooOld", text))
        return False

    def _too_old(self, reading: _Reading, end: PartFailed) -> None:
        """The versions do not reach the epoch, here or on another worker."""
        self.too_old += 1
        self._drop(reading)
        wanted = reading.wanted
        if wanted is not None and wanted.at is None and reading.attempts < _ATTEMPTS_MAX:
            self._wait(reading, reading.epoch + 1)
            reading.epoch = _NONE
        else:
            self._ends(reading, end)

    def _fail(self, reading: _Reading, code: str, kind: str, message: str) -> None:
        self._ends(reading, PartFailed(code, kind, message))

    def _ends(self, reading: _Reading, end: PartEnded) -> None:
        del self._by_id[reading.id]
        self._ended.append(ReadEnded(reading.id, max(_BEGINNING, reading.epoch), end))

    def _new_placing(self) -> Placing:
        generation = self._generation
        return Placing(generation.app, generation.limits, generation.n_slots, lambda: generation.executor.running)


def closed_epoch(worker: Worker) -> int:
    """The last epoch that has closed on the worker once it serves; -2 before, and until it has run the recorded epochs
    again: what is closed elsewhere, or was read here before a recovery, may not be closed here.
    """
    reached, epoch = worker.reached, worker.epoch
    if reached is Step.LOADING or reached is Step.LOADED:
        return _NONE
    closed = epoch - 1 if reached in _OPEN else epoch
    return closed if closed >= worker.recorded_until else _NONE


def answered_epoch(worker: Worker) -> int:
    """The last epoch of which a reply can have left, if only this worker gives replies of its slots: the *fence* of a
    strict read in an engine that nobody can take over.

    The replies of an epoch leave this worker when it commits, in the lock phase, or when it closes; never while it
    executes or validates. So each reply that anybody has got before the question is of this epoch or an earlier one. A
    read that waits for its close sees all of them, whatever else commits meanwhile. A reply that leaves later was given
    after the question: the read may come before it. An embedded engine holds the lock of its data, so there is no other
    worker that could have answered. In a cluster there may be one, and this is not enough: others may have taken over
    the slots of a worker that does not know of it.
    """
    return worker.epoch - 1 if worker.reached in _UNANSWERED else worker.epoch


def fence_epoch(worker: Worker) -> int | None:
    """The *fence* of a strict read on a worker among others: who waits until the record of a later epoch than this one
    is durable, and then reads at the end of this epoch or a later one, sees all that was answered before the question.
    None as long as the worker has not loaded its state: then the fence of the loaded state is as good.

    Let F be this epoch when the question comes, in generation G. A record of F + 1 is appended after the question. Each
    reply that anybody had before the question is of F or earlier:

    - *A reply of generation G.* It is of an epoch whose barrier 2 is passed. This worker has reported that barrier, and
      did so only when its own record of the epoch was durable. So it had begun the epoch, which is at most F.
    - *A reply of an older generation.* The records of its epoch were all durable before the marker of G, because the
      fence in front of the marker refuses later ones. So the epoch is in the snapshot that G began on, or is one of the
      recorded epochs. F is not below the last of these.
    - *A reply of a newer generation.* Before its marker was written, the producer of this worker was taken over, so
      before the reply. The record of F + 1 is appended later, and is refused. The read is never answered here.

    Where the worker has begun F + 1, it has closed F. Other workers may not have: parts wait there. F is complete, so
    every later generation runs it again as it was, under its number.
    """
    return None if worker.reached is Step.LOADING else max(worker.epoch, worker.recorded_until)


def least_epoch(worker: Worker, freshness: Freshness) -> int:
    """The epoch that a read waits for, in an engine that nobody can take over; -1 if it takes what is there."""
    if freshness.level == STRICT:
        return answered_epoch(worker)
    return freshness.token if freshness.level == SESSION else _BEGINNING
