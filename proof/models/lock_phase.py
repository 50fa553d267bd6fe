"""A lock phase with patch rounds on several workers, whose messages arrive in any order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from random import Random
from typing import NamedTuple, TypeAlias

from proof.models.part import Part, PartRun
from proof.models.patch_rounds import Cap, Coordinator, Decision, Report
from proof.models.patches import Patch, apply, patches
from proof.models.runner import Failed, Place, State

Parts: TypeAlias = dict[int, Part]
"""A slot's parts, by TID."""


class Shape(NamedTuple):
    """Sizes: slots, entities, and calls that a transaction may make."""

    n_slots: int
    n_keys: int
    calls_max: int


class Locked(NamedTuple):
    """What the lock phase begins with: the parts by slot and TID, and by TID the root's slot and the allowance of a
    part on a slot that had none.
    """

    parts: list[dict[int, Part]]
    roots: Mapping[int, int]
    growths: Mapping[int, int]


class Result(NamedTuple):
    """How a lock phase ended: the final exceptions and the roots' results by TID, who is carried, who of them was cut,
    and the rounds.
    """

    failed: dict[int, str]
    results: dict[int, int]
    carried: set[int]
    cut: set[int]
    rounds: int
    patched_rounds: int


class SlotRounds:
    """The lock phase of one slot. `parts` and their last `runs` are by TID; `current` is what these wrote."""

    def __init__(self, slot: int, locked: Locked, state: State, shape: Shape) -> None:
        self.runs: dict[int, PartRun] = {}
        self.current: State = {}
        self._slot = slot
        self._locked = locked
        self._state = state
        self._shape = shape
        self._cut: set[int] = set()
        self.begin(())

    def begin(self, cut: Collection[int]) -> None:
        """Begins from the execution step, without the transactions in `cut` and those that were cut before."""
        self._cut.update(cut)
        self._without = set(self._cut)
        self.parts = {tid: part.copy() for tid, part in self._locked.parts[self._slot].items()}

    def exclude(self, tids: Collection[int]) -> None:
        """These transactions leave."""
        self._without.update(tids)

    def apply(self, told: list[Patch]) -> None:
        """Applies the patches of a round."""
        apply(self.parts, self._locked.growths, [patch for patch in told if patch.tid not in self._without])

    def run(self) -> list[Patch]:
        """Runs all parts, and returns the patches for other slots."""
        found: list[Patch] = []
        self.runs, self.current = {}, {}
        for tid in sorted(self.parts.keys() - self._without):
            part = self.parts[tid]
            run = PartRun(part, self._slot, self._shape.n_slots, self._shape.n_keys, self.current, self._state)
            run.run()
            self.runs[tid] = run
            if run.failure is None:
                self.current.update(run.writes)
            found.extend(patches(tid, self._slot, part, run))
        return found

    def failures(self) -> list[tuple[int, Failed]]:
        """The failures of transactions that have parts on other slots as well."""
        roots, parts = self._locked.roots, self.parts
        return [
            (tid, run.failure)
            for tid, run in self.runs.items()
            if run.failure is not None and (roots[tid] != self._slot or parts[tid].sent)
        ]


class Message(NamedTuple):
    """A message to a worker: a patch of a round, or the decision of a round."""

    worker: int
    round: int
    content: Patch | Decision


class Worker:
    """A worker and its slots; `owners` has the worker of each slot."""

    def __init__(self, number: int, slots: dict[int, SlotRounds], owners: list[int]) -> None:
        self.round = 1
        self.ended = False
        self.slots = slots
        self._number = number
        self._owners = owners
        self._told: dict[int, list[Patch]] = {}
        self._decision: Decision | None = None

    def run(self, cut: Collection[int]) -> tuple[list[Message], Report]:
        """Runs the present round, in which the watchdog cuts the transactions in `cut`. Returns patches and report."""
        messages: list[Message] = []
        told: Counter[int] = Counter()
        for slot in self.slots.values():
            for patch in slot.run():
                owner = self._owners[patch.to]
                told[owner] += 1
                messages.append(Message(owner, self.round, patch))
        failures = [failure for slot in self.slots.values() for failure in slot.failures()]
        ran = {tid for slot in self.slots.values() for tid in slot.runs}
        patched = frozenset(message.content.tid for message in messages if isinstance(message.content, Patch))
        return messages, Report(failures, patched, told, frozenset(ran.intersection(cut)))

    def take(self, message: Message) -> bool:
        """Takes a message. Returns whether the next round is to be run."""
        if isinstance(message.content, Decision):
            self._decision = message.content
        elif message.round >= self.round:  # otherwise its round is void
            self._told.setdefault(message.round, []).append(message.content)
        decision, told = self._decision, self._told.get(self.round, [])
        if decision is None or (not decision.anew and len(told) < decision.due.get(self._number, 0)):
            return False
        self._decision = None
        self._told.pop(self.round, None)
        self.round += 1
        self.ended = decision.ended
        self._go_on(decision, told)
        return not self.ended

    def _go_on(self, decision: Decision, told: list[Patch]) -> None:
        for number, slot in self.slots.items():
            if decision.anew:
                slot.begin(decision.excluded)
            else:
                slot.exclude(decision.excluded)
                slot.apply([patch for patch in told if patch.to == number])


class LockPhase:
    """One lock phase on `n_workers`. `delivery` decides which message arrives next; `cuts` are TIDs by round."""

    def __init__(
        self,
        locked: Locked,
        state: State,
        shape: Shape,
        cap: Cap,
        n_workers: int,
        delivery: Random,
        cuts: Mapping[int, Collection[int]],
    ) -> None:
        self._locked = locked
        self._state = state
        self._delivery = delivery
        self._cuts = cuts
        self._slots = [SlotRounds(slot, locked, state, shape) for slot in range(shape.n_slots)]
        owners = [slot % n_workers for slot in range(shape.n_slots)]
        self._workers = [
            Worker(number, {s: self._slots[s] for s, owner in enumerate(owners) if owner == number}, owners)
            for number in range(n_workers)
        ]
        self._coordinator = Coordinator(locked.roots, cap)
        self._reports: dict[int, Report] = {}
        self._on_way: list[Message] = []
        self._excluded: dict[int, Failed | None] = {}
        self._cut: set[int] = set()

    def run(self) -> Result:
        """Runs the lock phase to its end, and applies what it wrote."""
        for worker in self._workers:
            self._run(worker)
        while self._on_way:
            message = self._on_way.pop(self._delivery.randrange(len(self._on_way)))
            worker = self._workers[message.worker]
            if worker.take(message):
                self._run(worker)
        assert all(worker.ended for worker in self._workers), "a worker waits for ever"
        return self._end()

    def _run(self, worker: Worker) -> None:
        number = worker.round
        messages, report = worker.run(self._cuts.get(number, ()))
        self._on_way.extend(messages)
        self._reports[self._workers.index(worker)] = report
        if len(self._reports) == len(self._workers):
            decision = self._coordinator.decide(list(self._reports.values()))
            self._check(decision)
            self._reports = {}
            if decision.anew:
                self._cut.update(decision.excluded)
                self._excluded = dict.fromkeys(self._cut)
            self._excluded.update(decision.excluded)
            self._on_way.extend(Message(to, number, decision) for to in range(len(self._workers)))

    def _check(self, decision: Decision) -> None:
        """Before a final exception no part waits, and every entry is a call that its caller makes."""
        for tid, failure in decision.excluded.items():
            if failure is None:
                continue
            runs = {number: slot.runs[tid] for number, slot in enumerate(self._slots) if tid in slot.runs}
            stops = [run.stop for run in runs.values() if run.stop is not None]
            assert min(stops) == failure.place, "waits before it raises"
            for number in runs:
                for (path, caller), entry in self._slots[number].parts[tid].entries.items():
                    behind = Place(entry.chain, path) >= failure.place
                    assert behind or not path or path in runs[caller].sent, (
                        "a call that nobody makes, before an exception"
                    )

    def _end(self) -> Result:
        excluded, coordinator = self._excluded, self._coordinator
        carried = {tid for tid, failure in excluded.items() if failure is None}
        failed = {tid: failure.message for tid, failure in excluded.items() if failure is not None}
        results: dict[int, int] = {}
        for tid in self._locked.roots.keys() - excluded.keys():
            run = self._slots[self._locked.roots[tid]].runs[tid]
            if run.failure is None:
                assert run.result is not None
                assert not any(slot.runs[tid].waits for slot in self._slots if tid in slot.runs), "waits at the end"
                results[tid] = run.result
            elif run.failure.limit:
                carried.add(tid)
            else:
                failed[tid] = run.failure.message
        for slot in self._slots:
            self._state.update(slot.current)
        return Result(failed, results, carried, self._cut, coordinator.rounds, coordinator.patched_rounds)
