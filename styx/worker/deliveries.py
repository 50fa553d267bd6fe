"""The deliveries of a worker: which calls of its slots' agendas are due, their transactions, and their end.

An epoch record says how many were taken and at what time, so that a replay takes the same ones. A delivery that aborts
goes on, in the next epoch and under its own TID, as the transaction that puts the call off. A clock is not read here.
Paper sections 5.1 and 7.2.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from msgspec.structs import astuple

from styx.errors import BadKey, UnknownOperator
from styx.messages import Request, decode_request, encode_request
from styx.model.agenda import (
    AgendaEntry,
    called_key,
    dead_of,
    decode_dead,
    decode_entry,
    entry_key,
    giver_of,
)
from styx.model.app import App
from styx.model.context import PATH_STEP_BYTES
from styx.model.cron import moment_us
from styx.model.delivery import (
    DEAD,
    KEPT,
    UNPLACED,
    delivery_function,
    delivery_name,
    delivery_request,
    entry_of,
    put_off_request,
)
from styx.model.function_spec import PUT_OFF_FUNCTION
from styx.model.lifetime import EXPIRE_FUNCTION
from styx.protocol.frames import Failure
from styx.protocol.manifest import PendingTransaction
from styx.state.due_calls import DueCall
from styx.state.slot_state import SlotState
from styx.state.table import NEWEST
from styx.values.codec import decode_plain
from styx.worker.events import CallGivenUp
from styx.worker.root import RootTransaction

DUE_MAX: Final = 250
"""Calls of one slot that an epoch takes, so that many that are due at once do not keep requests from their turn."""
NOWHERE: Final = -1
"""The offset of a transaction that stands at no place of the log."""


class Deliveries:
    """`now_us` is the time that the host has told in this generation, in microseconds since 1970; it never goes back.

    `any`: some slot has an agenda; nothing needs to be asked before. `under_way` counts the deliveries in the present
    epoch, carried, and parked.
    """

    def __init__(self, app: App) -> None:
        self.now_us = 0
        self.under_way = 0
        self.any = False
        self._app = app
        self._states: dict[int, SlotState] = {}
        self._given_up: list[CallGivenUp] = []

    def add_slot(self, slot: int, state: SlotState) -> None:
        """Adds a slot."""
        self._states[slot] = state
        self.any = self.any or state.due_calls is not None
        state.agenda_begins = self._begins

    def _begins(self) -> None:
        self.any = True

    def end(self) -> None:
        """Lets go of the slots' states, which refer to this and to their agendas: nobody collects circles."""
        for state in self._states.values():
            state.agenda_begins = None
            state.forget_order()
        self._states = {}

    # What is due -------------------------------------------------------------------------------------------

    def has_due(self, full: Container[int] = frozenset()) -> bool:
        """Whether a call is due on a slot that is not `full`: those take no calls."""
        now_us = self.now_us
        for slot, state in self._states.items():
            if state.due_calls is not None and slot not in full and state.due_calls.has_due(now_us):
                return True
        return False

    def next_us(self) -> int | None:
        """When the next timer is due, None if there is none."""
        orders = [state.due_calls for state in self._states.values() if state.due_calls is not None]
        return min([next_us for order in orders if (next_us := order.next_us) is not None], default=None)

    def overdue_us(self, now_us: int) -> int:
        """For how long the call has been due, at `now_us`, that waits longest; 0 if none is due."""
        orders = [state.due_calls for state in self._states.values() if state.due_calls is not None]
        oldest = [oldest_us for order in orders if (oldest_us := order.oldest_us) is not None]
        return max(0, now_us - min(oldest, default=now_us))

    def waiting(self) -> int:
        """The calls that were given and not made, on all slots."""
        return sum(state.agenda_length() for state in self._states.values())

    # Transactions ------------------------------------------------------------------------------------------

    def take(self, slot: int, now_us: int, limit: int) -> list[DueCall]:
        """The next calls of the slot that are due at `now_us`; the same for the same state, time and number."""
        due_calls = self._states[slot].due_calls
        return [] if due_calls is None else due_calls.take(now_us, limit)

    def root(self, slot: int, tid: int, call: DueCall, now_us: int) -> RootTransaction:
        """The transaction that makes a call that was taken."""
        entries = self._entries(slot, call)
        entry = entries[0]
        # Neither before its time nor before its cause, whatever the clocks of this host and of others show.
        time_us = max(now_us, entry.due_us, *[each.given_us for each in entries])
        request = delivery_request(call.table, call.key, call.id, time_us, call.behind)
        root = self._made(slot, tid, moment_us(entry, time_us), request, call.id)
        if call.behind:
            # Calls of one entity would be in each other's way at once; those of different ones need not wait.
            root.sequential = len({(each.operator, called_key(each)) for each in entries}) < len(entries)
        return root

    def _entries(self, slot: int, call: DueCall) -> list[AgendaEntry]:
        table, keys = self._states[slot].table(call.table), [call.key]
        if call.behind:
            entity = giver_of(call.key)[0]
            keys += [entry_key(entity, its_id) for its_id in call.behind]
        found = [data for key in keys if (data := table.read(NEWEST, key)) is not None]
        assert len(found) == len(keys), "a call was taken that does not stand in its agenda"
        return [decode_entry(data) for data in found]

    def readmit(self, slot: int, pending: PendingTransaction) -> RootTransaction | None:
        """Continues a delivery from a snapshot; None if the present app has no such entity. That is a cron's, which has
        gone with its operator and takes nothing with it: an app that lacks the entity of another call is refused.
        """
        request = decode_request(pending.payload)
        try:
            self._app.operator(request.operator).check_key(request.key)
        except (UnknownOperator, BadKey):
            return None
        call_id = entry_of(request)
        due_calls = self._states[slot].due_calls
        if due_calls is not None:
            due_calls.take_up(call_id)
        return self._made(slot, pending.tid, pending.timestamp_us, request, call_id)

    def _made(self, slot: int, tid: int, time_us: int, request: Request, call_id: str) -> RootTransaction:
        operator = self._app.operator(request.operator)
        function = delivery_function(operator, request.function)
        key = operator.check_key(request.key)
        payload = encode_request(request)
        root = RootTransaction(
            tid, slot, NOWHERE, time_us, payload, request.request_id, 0, function, key, request.params, entry=call_id
        )
        self.under_way += 1
        return root

    def ended(self, root: RootTransaction) -> bool:
        """Whether a delivery has ended: it was made, withdrawn or put off. If not, `root` puts it off from here on."""
        assert root.entry is not None, "a request is no delivery"
        if root.failure is None:
            self.under_way -= 1
            self._note_dead(root)
            due_calls = self._states[root.slot].due_calls
            if due_calls is not None:
                due_calls.let_go(root.entry)
            return True
        request, failure = decode_request(root.payload), root.failure
        taken = delivery_name(request.request_id)
        assert taken is not None, "what is put off is no delivery"
        put_off = put_off_request(request, taken.now_us, (failure.type, failure.message), _failed_call(root, failure))
        root.timestamp_us = taken.now_us  # pauses begin at the time when a cron's tick was taken
        root.function = delivery_function(self._app.operator(put_off.operator), put_off.function)
        root.payload, root.request_id, root.params = encode_request(put_off), put_off.request_id, put_off.params
        root.refused = root.externals = None
        root.sequential = False
        return False

    def _note_dead(self, root: RootTransaction) -> None:
        """Notes the call if `root` has given it up, or could not delete what has come to the end of its life."""
        assert root.function is not None
        if root.function.name != PUT_OFF_FUNCTION:
            return
        request = decode_request(root.payload)
        ended, *error = decode_plain(root.result or b"\xc0")
        if ended == KEPT:
            name, entity = request.operator, root.key
            self._given_up.append(CallGivenUp(name, entity, name, EXPIRE_FUNCTION, entity, 1, (error[0], error[1])))
        if ended != DEAD:
            return
        table = self._states[root.slot].table(dead_of(request.operator))
        dead = table.read(NEWEST, entry_key(root.key, str(root.entry)))
        if dead is not None:  # it was not dropped in the same epoch, which gives up far fewer calls than are kept
            entry, _, why = astuple(decode_dead(dead))
            dropped = error[2] if len(error) > 2 else 0
            who, attempts = (request.operator, root.key), entry.attempt
            self._given_up.append(CallGivenUp(*who, entry.operator, entry.function, entry.key, attempts, why, dropped))

    def take_given_up(self) -> list[CallGivenUp]:
        """The calls that were given up since the last time."""
        taken, self._given_up = self._given_up, []
        return taken


def _failed_call(root: RootTransaction, failure: Failure) -> int:
    """Which of the calls that were made together has failed; `UNPLACED` if it was none of them alone. The outcome of a
    function that ran too long is recorded without its place, so nothing may depend on that.
    """
    return UNPLACED if root.cut or not failure.chain else int.from_bytes(failure.chain[:PATH_STEP_BYTES], "big")
