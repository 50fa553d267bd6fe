"""What serial execution, execution step and lock phase have in common: an invocation is driven from wait to wait."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple, TypeAlias

from proof.models.programs import Call, Raised, interpret

Path: TypeAlias = tuple[int, ...]
State: TypeAlias = dict[int, int]


class Place(NamedTuple):
    """A place in the serial execution of a transaction; places compare in serial order.

    `chain` is the path of the chain's outermost invocation. `position` is the path of an invocation and the index of
    the call that it would make next, so it stands after everything the invocation had waited for.
    """

    chain: Path
    position: Path


class Failed(Exception):
    """Ends a run: an exception of a program at `place`, or too many calls (`limit`)."""

    def __init__(self, place: Place, message: str, limit: bool = False) -> None:
        super().__init__(message)
        self.place = place
        self.message = message
        self.limit = limit


LIMIT = "too many calls"
"""The message of a transaction that makes more calls than it may."""


class Runner(ABC):
    """Runs invocations of one transaction."""

    def __init__(self, n_keys: int) -> None:
        self.n_keys = n_keys

    @abstractmethod
    def read(self, chain: Path, key: int) -> int:
        """The entity's number as this chain sees it."""

    @abstractmethod
    def write(self, chain: Path, key: int, value: int) -> None:
        """Makes `value` the entity's number."""

    @abstractmethod
    def called(self, chain: Path, path: Path, index: int, call: Call) -> int:
        """The invocation at `path` makes its call number `index`. Returns the result if the call is synchronous."""

    def invoke(self, chain: Path, path: Path, call: Call) -> int:
        """Runs an invocation to its end, and returns its result. Raises `Failed`."""
        running = interpret(call, self.n_keys)
        made, answer = 0, None
        while True:
            try:
                request = running.send(answer)  # type: ignore[arg-type]  # None to begin with
            except StopIteration as stop:
                result: int = stop.value
                return result
            except Raised as raised:
                raise Failed(Place(chain, (*path, made)), str(raised)) from None
            answer = 0
            if request.kind == "get":
                answer = self.read(chain, call.key)
            elif request.kind == "put":
                self.write(chain, call.key, request.value)
            else:
                assert request.call is not None
                made += 1
                answer = self.called(chain, path, made - 1, request.call)
