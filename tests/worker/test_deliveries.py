"""The transaction of calls that are delivered together: when they are made, which of them has failed, and what an
external call does to it.
"""

from __future__ import annotations

from typing import Any

import pytest

from styx import App, Operator
from styx.model.agenda import AT_ONCE, AgendaEntry, agenda_of, encode_entry
from styx.model.delivery import UNPLACED, delivery_name, delivery_request
from styx.protocol.frames import Failure
from styx.state.slot_state import SlotState
from styx.worker.deliveries import Deliveries, _failed_call
from styx.worker.root import RootTransaction


def root(**given: Any) -> RootTransaction:
    return RootTransaction(1, 0, -1, 0, b"", given.pop("request_id", ""), 0, None, "a", b"", **given)


def failure(chain: bytes) -> Failure:
    return Failure(chain, chain, False, "aborted", "ValueError", "no")


@pytest.mark.parametrize(("chain", "number"), [(b"\0\0", 0), (b"\0\5", 5), (b"\1\2\0\7\0\1", 258), (b"", UNPLACED)])
def test_the_first_step_of_a_failure_s_place_is_the_call(chain: bytes, number: int) -> None:
    assert _failed_call(root(), failure(chain)) == number


def test_nothing_depends_on_the_place_of_a_function_that_ran_too_long() -> None:
    """A replay has the recorded outcome alone, which has no place."""
    assert _failed_call(root(cut=True), failure(b"\0\5")) == UNPLACED


@pytest.mark.parametrize(("behind", "waits"), [((), True), (("2~x",), False)])
def test_calls_together_do_not_wait_for_external_functions(behind: tuple[str, ...], waits: bool) -> None:
    request = delivery_request(agenda_of("cart"), ("a", "1~x"), "1~x", 7, behind)
    delivered = root(request_id=request.request_id, entry="1~x")
    delivered.needs_external()
    assert delivered.external is waits
    assert (delivered.failure is None) is waits
    assert waits or _failed_call(delivered, delivered.failure) == UNPLACED  # type: ignore[arg-type]  # it has failed


def test_a_request_waits_for_them() -> None:
    asked = root(request_id="r1")
    asked.needs_external()
    assert asked.external
    assert asked.failure is None


@pytest.mark.parametrize(("keys", "sequential"), [("abc", False), ("aba", True)])
def test_calls_together_are_made_behind_all_their_causes(keys: str, sequential: bool) -> None:
    """The clock of who gave the second one is ahead. Calls of one entity run one after the other from the beginning."""
    state, deliveries = SlotState(), Deliveries(App("shop", [Operator("cart")]))
    deliveries.add_slot(0, state)
    for number, (key, given_us) in enumerate(zip(keys, (10, 50, 30), strict=True), 1):
        its_id = f"{number}~x"
        entry = AgendaEntry(AT_ONCE, its_id, given_us, "cart", "send", key, b"\x90", 5, 1)
        state.table(agenda_of("cart")).write(1, ("g", its_id), encode_entry(entry))
    [call] = deliveries.take(0, 20, 1)
    made = deliveries.root(0, 1, call, 20)
    assert (made.timestamp_us, made.sequential) == (50, sequential)
    assert delivery_name(made.request_id) == (50, False, "1~x", 3)
