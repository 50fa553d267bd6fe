"""The program of the checking process: it compares an engine's replies and stored state with a serial execution, an
epoch at a time. Messages come on standard input, and findings go to standard output.

python -m styx.cli.check.checker

Each transaction is run twice, one run after the other, so that a function that changes global state it later reads is
found. Differences are reported once an epoch. Then the engine's state is taken over, so that one difference causes no
others. External functions are not run: their logged outcomes are used.
"""

from __future__ import annotations

import inspect
import logging
import os
import signal
import sys
from collections.abc import Iterator
from types import CodeType
from typing import Any, BinaryIO, Final

import msgspec

from styx.cli.app_target import load_app
from styx.cli.check.messages import (
    CHANGED,
    Begin,
    Checked,
    Difference,
    Ended,
    Epoch,
    State,
    encode,
    read,
    to_checker,
    write,
)
from styx.cli.exit_codes import CommandFailed
from styx.cli.source_files import stamps_of
from styx.messages import Request, decode_request
from styx.model.app import App
from styx.model.execution import Outcome
from styx.model.limits import Limits
from styx.model.sequence import decode_number
from styx.model.table_names import holds_sequences
from styx.testing.serial import Entity, MissingExternal, SerialReference, external_result
from styx.values.codec import shown

NOT_AGAIN: Final = frozenset({"FunctionTooLong"})
"""Types of errors that end a transaction from outside: without them its functions may never end."""


NICE: Final = 10
"""The serving process comes first."""
EPOCH_SECONDS_MAX: Final = 60
"""The time for the functions of one epoch; then the process ends."""
ENTITIES_MAX: Final = 200_000


class _Reference(SerialReference):
    """A serial execution that keeps the writes of a transaction apart until `keep`."""

    def __init__(self, app: App, limits: Limits, n_slots: int) -> None:
        super().__init__(app, limits, n_slots)
        self.writes: dict[Entity, bytes | None] = {}

    def _commit(self, writes: dict[Entity, bytes | None]) -> None:
        self.writes = writes

    def keep(self) -> None:
        """Takes the writes of the last transaction into the state."""
        super()._commit(self.writes)


class Checker:
    """The comparison. `state` must be called before the first epoch."""

    def __init__(self, app: App, limits: Limits, n_slots: int) -> None:
        self._app = app
        self._reference = _Reference(app, limits, n_slots)

    @property
    def entities(self) -> int:
        """The number of entities that it holds."""
        return len(self._reference.state)

    def state(self, state: State) -> None:
        """Begins anew from this state."""
        self._reference.state = {
            (each.operator, _key(each.key)): each.value for each in state.entities if each.value is not None
        }

    def epoch(self, epoch: Epoch) -> Difference | None:
        """Runs the transactions that ended in an epoch; gives the first difference."""
        state, found = self._reference.state, None
        before: dict[Entity, bytes | None] = {}
        writers: dict[Entity, tuple[Ended, Request]] = {}
        for ended in epoch.ended:
            if ended.error is not None and ended.error[1] in NOT_AGAIN:
                continue
            request = decode_request(ended.payload)
            text, writes = self._again(ended, request)
            if text is not None and found is None:
                found = self._difference(epoch.epoch, ended, request, text)
            for entity in writes:
                before.setdefault(entity, state.get(entity))
                writers[entity] = (ended, request)
            self._reference.keep()
        theirs = {(each.operator, _key(each.key)): each.value for each in epoch.written}
        for entity, value in {**before, **theirs}.items():
            mine = state.get(entity)
            if mine == value:
                continue
            if found is None and entity in writers:
                ended, request = writers[entity]
                found = self._difference(epoch.epoch, ended, request, self._stored(entity, value, mine))
            if value is None:
                state.pop(entity, None)
            else:
                state[entity] = value
        return found

    def _again(self, ended: Ended, request: Request) -> tuple[str | None, dict[Entity, bytes | None]]:
        """(difference in words or None, writes) of two more runs of a transaction."""
        reference = self._reference
        reference.externals = {key: external_result(outcome) for key, outcome in (ended.externals or {}).items()}
        told = Outcome(ended.result, ended.error)
        text = None
        first: dict[Entity, bytes | None] | None = None
        for _ in range(2):
            reference.writes = {}
            try:
                outcome = reference.run(ended.tid, ended.timestamp_us, request)
            except MissingExternal as missing:
                text = text or f"it called an external function as it does not when it is run again: {missing}"
                continue
            if text is None and outcome != told:
                text = f"{_said(told)}, and when it was run again, alone, {_said(outcome)}"
            if text is None and first is not None and first != reference.writes:
                text = next(self._twice(first, reference.writes), None)
            first = reference.writes
        return text, reference.writes

    def _twice(self, first: dict[Entity, bytes | None], second: dict[Entity, bytes | None]) -> Iterator[str]:
        for entity in first.keys() | second.keys():
            if first.get(entity) != second.get(entity):
                yield self._stored(entity, first.get(entity), second.get(entity))

    def _stored(self, entity: Entity, one: bytes | None, other: bytes | None) -> str:
        name = f"{entity[0]}[{shown(entity[1])}]"
        values = (self._value(entity, one), self._value(entity, other))
        return f"it stored {values[0]} in {name}, and when it was run again, alone, {values[1]}"

    def _value(self, entity: Entity, data: bytes | None) -> str:
        if data is None:
            return "nothing"
        try:
            if holds_sequences(entity[0]):
                return shown(decode_number(data))
            table = self._app.table(entity[0])
            decode = self._app.operator(entity[0]).decode_state if table is None else table.row_type.decode
            return shown(decode(data))
        except Exception:  # noqa: BLE001 - state that cannot be decoded is shown as bytes
            return shown(data)

    def _difference(self, epoch: int, ended: Ended, request: Request, text: str) -> Difference:
        func = inspect.unwrap(self._app.operator(request.operator).function(request.function).func)
        code = func.__code__
        key = list(request.key) if isinstance(request.key, tuple) else request.key
        place = (code.co_filename, _first_line(code))
        return Difference(request.operator, key, request.function, ended.tid, epoch, text, *place)


def _said(outcome: Outcome) -> str:
    if outcome.error is not None:
        _, kind, message = outcome.error
        return f"it raised {kind}: {shown(message)}"
    try:
        return f"it gave {shown(msgspec.msgpack.decode(outcome.result or b''))}"
    except msgspec.DecodeError:
        return f"it gave {shown(outcome.result)}"


def _first_line(code: CodeType) -> int:
    """The line of the function's first statement, or of its `def`: not of its decorators."""
    lines = sorted({line for *_, line in code.co_lines() if line is not None and line > code.co_firstlineno})
    return lines[0] if lines else code.co_firstlineno


def _key(key: Any) -> Any:
    return tuple(key) if isinstance(key, list) else key


def main() -> None:
    """Checks until standard input ends."""
    os.nice(NICE)
    incoming, outgoing = _streams()
    logging.disable(logging.CRITICAL)
    sys.dont_write_bytecode = True
    checker: Checker | None = None
    while (data := read(incoming)) is not None:
        message = to_checker(data)
        found: Difference | None = None
        problem = ""
        signal.alarm(EPOCH_SECONDS_MAX)
        if isinstance(message, Begin):
            try:
                checker = Checker(load_app(message.target), message.limits, message.n_slots)
            except CommandFailed as error:
                problem = error.message
            if stamps_of(message.files) != message.files:
                problem = CHANGED
        elif isinstance(message, State):
            assert checker is not None
            checker.state(message)
        else:
            assert isinstance(message, Epoch)
            assert checker is not None
            found = checker.epoch(message)
            if checker.entities > ENTITIES_MAX:
                problem = f"there are more than {ENTITIES_MAX:,} entities"
        signal.alarm(0)
        if found is not None:
            write(outgoing, encode(found))
        write(outgoing, encode(Checked(problem)))
        if problem:
            return


def _streams() -> tuple[BinaryIO, BinaryIO]:
    incoming, outgoing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # The output of the app is dropped: the serving process has printed it already.
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)
    return incoming, outgoing


if __name__ == "__main__":
    main()
