"""A transaction's part on one slot in the lock phase: which calls of other slots run here, with which arguments, what
other slots have been given, and what its functions have called there. Between two rounds patches change it.

Each pair (slot of the caller, path) is a register of its own: the caller's slot alone writes it, so the order in which
patches arrive decides nothing. Paper section 6.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from styx.model.function_spec import FunctionSpec, MadeCall
from styx.native.compiled import calls_more
from styx.native.interpreted import native
from styx.protocol.frames import Patch
from styx.worker.footprint import Footprint
from styx.worker.invocation import Invocation
from styx.worker.outbox import made_call, named

Place = tuple[bytes, bytes]
"""(chain, path): orders what a transaction does as its serial execution does."""
_CACHED: Final = -1
"""In place of the caller's slot: the call was made in the execution step, which does not say where."""


@native
class Entry(msgspec.Struct, eq=False, frozen=True, gc=False):
    """A call from another slot, or the root. `from_slot` gets the result of a synchronous one."""

    chain: bytes
    path: bytes
    synchronous: bool
    function: FunctionSpec
    key: Any
    params: bytes
    from_slot: int


@native
class Sent(msgspec.Struct, eq=False, frozen=True, gc=False):
    """A call to another slot. `chain` is its caller's. `cached`: the execution step has sent it."""

    call: MadeCall
    chain: bytes
    cached: bool = False

    def same(self, other: Sent) -> bool:
        """Whether the callee's slot would notice no difference."""
        return self.call == other.call and (not self.call.synchronous or self.chain == other.chain)

    def answers(self, other: Sent) -> bool:
        """Whether its result is a guess at the other call's."""
        return self.call.function is other.call.function and self.call.synchronous and other.call.synchronous


class CallGraph:
    """The part of one transaction on one slot. `results` are the results of synchronous calls to other slots, as far as
    they are known. `allowance`: so many calls may be counted in one run. `several`: a run of this part was
    more than one invocation, or did not return at once. `touched` are the entities, (operator, key), of the last run.

    `growth`: so many more than in the execution step, on each slot. The sum over all slots stays within the limit, and
    no slot's allowance depends on the rounds or on what other slots do.
    """

    def __init__(self, footprint: Footprint, growth: int) -> None:
        self.footprint = footprint
        self.allowance = growth
        self.results: dict[bytes, bytes] = {}
        self._entries: dict[bytes, dict[int, Entry]] = {}
        self._sent: dict[bytes, Sent] = {}
        self._given: dict[tuple[bytes, int], bytes] = {}
        self.several = len(footprint.invocations) != 1
        self.touched: list[tuple[str, Any]] = []
        self._guessed: set[bytes] = set()
        self._patched: set[bytes] = set()
        self._patched_in = -1
        own = {invocation._path for invocation in footprint.invocations}
        for invocation in footprint.invocations:
            self._add(invocation, not invocation._path or invocation._path[:-2] not in own)

    def _add(self, invocation: Invocation, entry: bool) -> None:
        """Adds what an invocation of the execution step is, has called and was given."""
        footprint, path, result = self.footprint, invocation._path, invocation._result
        synchronous = invocation._share < 0
        if synchronous and result is not None:
            self.allowance += calls_more(result, footprint.limits)
        if entry:
            self._entries[path] = {
                _CACHED: Entry(
                    invocation._chain_id,
                    path,
                    synchronous,
                    invocation._spec,
                    invocation._key,
                    invocation._params,
                    invocation._from_slot,
                )
            }
            if synchronous and result is not None:
                self._given[path, invocation._from_slot] = result
        results = invocation._results
        for index, call in enumerate(invocation._calls or ()):
            self.allowance += 1 + calls_more(call.params, footprint.limits)
            if call.slot != footprint.slot:
                below = invocation.step_path(index)
                self._sent[below] = Sent(call, invocation._chain_id, True)
                if call.synchronous and results is not None and index in results:
                    self.results[below] = results[index]

    def entries(self) -> list[Entry]:
        """The calls to run. While a call moves from one slot to another, both may claim to make it, and the one that
        comes first in serial order runs.
        """
        return [
            next(iter(claims.values())) if len(claims) == 1 else min(claims.values(), key=_first)
            for claims in self._entries.values()
        ]

    def only_entry(self) -> Entry | None:
        """The call to run if there is one and it has been all that ran here so far."""
        if self.several or len(self._entries) != 1:
            return None
        (claims,) = self._entries.values()
        return next(iter(claims.values())) if len(claims) == 1 else None

    @property
    def settled(self) -> bool:
        """Whether no two slots claim to make the same call, and no result is a guess."""
        return not self._guessed and all(len(claims) == 1 for claims in self._entries.values())

    @property
    def changed(self) -> bytes | None:
        """The path of the first call to another slot that the last run changed; None if it changed none."""
        return min(self._patched, default=None)

    def sent(self, path: bytes) -> Sent | None:
        """The call to another slot that this slot has last said to make at `path`."""
        return self._sent.get(path)

    def result(self, path: bytes, call: Sent) -> bytes | None:
        """The result of a synchronous call to another slot; None if there is none.

        If the call has other arguments than before, its last result is a guess: whoever is called gives a result for
        the changed call in any case, and no round with a patch is the last.
        """
        before = self._sent.get(path)
        return self.results.get(path) if before is not None and before.answers(call) else None

    # What a run has changed ------------------------------------------------------------------------------------

    def ran(
        self,
        number: int,
        made: Mapping[bytes, Sent],
        given: Mapping[tuple[bytes, int], bytes],
        stopped: Place | None,
    ) -> list[Patch]:
        """Takes the calls that a run in round `number` made to other slots, and the results that it gave to them.
        Returns a patch for each difference.

        A run that failed, or waits, at `stopped` says nothing of what comes behind that place, which stays as it was.
        """
        found: list[Patch] = []
        self._patched, self._patched_in = set(), number
        for path, before in list(self._sent.items()):
            if path not in made and (stopped is None or (before.chain, path) < stopped):
                del self._sent[path]
                self._withdraw(found, path, before)
        for path, call in made.items():
            old = self._sent.get(path)
            if old is not None and old.same(call):
                if old.chain != call.chain:  # its caller was asked, and is sent now, or the other way round
                    self._sent[path] = Sent(call.call, call.chain, old.cached)
                continue
            replaces = old is not None and old.call.slot == call.call.slot
            if old is not None and not replaces:
                self._withdraw(found, path, old)
            self._sent[path] = call
            if old is None or not old.answers(call):
                self.results.pop(path, None)
                self._guessed.discard(path)
            elif path in self.results:
                self._guessed.add(path)
            self._patched.add(path)
            found.append(self._call(path, call, replaces and old is not None and old.cached))
        for (path, to_slot), value in given.items():
            if self._given.get((path, to_slot)) != value:
                self._given[path, to_slot] = value
                found.append(self._patch(path, to_slot, result=value))
        return found

    def _withdraw(self, found: list[Patch], path: bytes, before: Sent) -> None:
        self.results.pop(path, None)
        self._guessed.discard(path)
        self._patched.add(path)
        found.append(self._patch(path, before.call.slot, cached=before.cached))

    def _call(self, path: bytes, sent: Sent, cached: bool) -> Patch:
        footprint, call = self.footprint, sent.call
        chain = sent.chain if call.synchronous else path
        patch = self._patch(path, call.slot, cached=cached)
        patch.call, patch.chain = named(call), chain
        patch.root_slot, patch.timestamp_us = footprint.root_slot, footprint.timestamp_us
        patch.externals = footprint.externals
        return patch

    def _patch(self, path: bytes, slot: int, cached: bool = False, result: bytes | None = None) -> Patch:
        footprint = self.footprint
        return Patch(self._patched_in, footprint.tid, slot, footprint.slot, path, cached=cached, result=result)

    # What other slots have changed -----------------------------------------------------------------------------

    def apply(self, patch: Patch) -> None:
        """Takes a patch from another slot."""
        path, from_slot = patch.path, patch.from_slot
        if patch.result is not None:
            # If the call was patched in the same round, this is what another call gave.
            if path in self._sent and not (patch.round == self._patched_in and path in self._patched):
                self.results[path] = patch.result
                self._guessed.discard(path)
            return
        claims = self._entries.get(path, {})
        self._given.pop((path, from_slot), None)
        claims.pop(_CACHED if patch.cached else from_slot, None)
        if patch.call is not None:
            call = made_call(self.footprint.app, patch.call)
            claims[from_slot] = Entry(
                patch.chain, path, call.synchronous, call.function, call.key, call.params, from_slot
            )
        if claims:
            self._entries[path] = claims
        else:
            self._entries.pop(path, None)


def _first(entry: Entry) -> tuple[bytes, bytes, int]:
    return entry.chain, entry.path, entry.from_slot
