"""The order that replies claim. Each reply is compared with a serial execution at its place, during the run.

A request that was sent after a reply came must be later in the order than that reply. So all future replies are later
than the replies that had come when the oldest request under way was sent. Up to that point the transactions are run
again, on a dictionary, and then forgotten. So the memory grows with the requests under way, not with the length of the
run.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from typing import Any, Final, NamedTuple

import msgspec

from examples.bank import account, app
from examples.bank_audit.findings import BALANCES, REAL_TIME, SERIAL_ORDER, Findings
from examples.bank_audit.workload import Call
from styx.messages import Reply, Request
from styx.model.execution import Outcome
from styx.testing.serial import SerialReference

WAITING_MAX: Final = 20_000
"""The number of waiting replies above which no further requests should be sent. A reply waits for older ones."""
BEFORE_MAX: Final = 3
"""The number of earlier transactions on an account in an explanation."""

Place = tuple[int, int, int]
"""(epoch, phase, transaction id), by which transactions are ordered."""


class Answer(NamedTuple):
    """A reply at its place; `number` is its request's."""

    place: Place
    number: int
    call: Call
    result: Any
    error: str | None

    def __str__(self) -> str:
        epoch, phase, tid = self.place
        return f"epoch {epoch} phase {phase} tid {tid}: {self.call} -> {self.error or repr(self.result)}"


class SerialOrder:
    """The order so far. `replayed` counts the transactions that were run again. `latest` is the last place of any
    reply.
    """

    def __init__(self, findings: Findings) -> None:
        self.replayed = 0
        self.latest: Place = (0, 0, 0)
        self._findings = findings
        self._reference = SerialReference(app)
        self._last: Place = (0, 0, 0)
        self._broken = False
        self._floors: dict[int, Place] = {}
        self._waiting: list[Answer] = []
        self._before: dict[str, deque[Answer]] = {}

    @property
    def full(self) -> bool:
        """Whether too many replies wait for older ones."""
        return len(self._waiting) >= WAITING_MAX

    @property
    def waiting(self) -> int:
        """Replies that were not run again yet."""
        return len(self._waiting)

    def sent(self, number: int) -> None:
        """A request is about to be sent for the first time."""
        self._floors[number] = self.latest

    def answered(self, number: int, call: Call, reply: Reply) -> None:
        """Its reply has come."""
        floor = self._floors.pop(number)
        answer = Answer(place_of(reply), number, call, reply.result, None if reply.error is None else reply.error.type)
        if answer.place <= floor:
            self._findings.violated(
                REAL_TIME, f"sent after a reply of epoch {floor[0]} phase {floor[1]} tid {floor[2]} came: {answer}"
            )
        self.latest = max(self.latest, answer.place)
        heappush(self._waiting, answer)
        self._replay()

    def balance(self, key: str) -> int:
        """An account's balance after the transactions that were run again; 0 if it was not opened."""
        state = self._reference.value(account.name, key)
        return 0 if state is None else state["balance"]

    def _replay(self) -> None:
        # Floors only grow, so the oldest entry has the lowest one.
        known = next(iter(self._floors.values()), self.latest)
        while self._waiting and self._waiting[0].place <= known:
            self._run(heappop(self._waiting))

    def _run(self, answer: Answer) -> None:
        if self._broken:  # every reply after a difference differs as well
            return
        request = Request("", account.name, answer.call.key, answer.call.function, _encode(answer.call.arguments))
        expected = self._reference.run(answer.place[2], 0, request)
        why = None
        if answer.place == self._last:
            why = "another request has the same place"
        elif not _agrees(answer, expected):
            why = f"the serial execution gives {_outcome_text(expected)}"
        if why is not None:
            self._broken = True
            question = answer.call.function == "credit"
            self._findings.violated(BALANCES if question else SERIAL_ORDER, self._explained(answer, why))
            return
        self._last = answer.place
        self.replayed += 1
        for key in accounts_of(answer.call):
            self._before.setdefault(key, deque(maxlen=BEFORE_MAX)).append(answer)

    def _explained(self, answer: Answer, why: str) -> str:
        before = [each for key in accounts_of(answer.call) for each in self._before.get(key, ())]
        lines = [f"{answer}; {why}. Before it, on the same accounts:"]
        lines += [f"    {each}" for each in sorted(set(before))] or ["    nothing"]
        return "\n".join(lines)


def place_of(reply: Reply) -> Place:
    """Where a reply stands in the order."""
    return reply.epoch, reply.phase, reply.tid


def accounts_of(call: Call) -> list[str]:
    """The accounts that a call is about."""
    return [call.key, *(each for each in call.arguments if isinstance(each, str))]


def _agrees(answer: Answer, expected: Outcome) -> bool:
    if expected.error is not None:
        return answer.error == expected.error[1]
    return answer.error is None and _encode(answer.result) == expected.result


def _outcome_text(outcome: Outcome) -> str:
    return outcome.error[1] if outcome.error is not None else repr(msgspec.msgpack.decode(outcome.result or b""))


_encode = msgspec.msgpack.Encoder().encode
