"""Numbers that travel between slots under load: how many transactions are carried into another epoch, and how many
rounds a lock phase has.
"""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.micro.engine_loop import EngineLoop
from benchmarks.travelling_numbers.app import app as travelling_numbers
from benchmarks.travelling_numbers.shapes import SHAPES
from styx import App, Context, Operator
from styx.coordinator import barrier
from styx.messages import Request, decode_reply, encode_request
from styx.model.execution import resolve_request
from styx.model.limits import PATCH_ROUNDS_MAX, PATCH_ROUNDS_MORE, PATCH_ROUNDS_TIMES, Limits
from styx.protocol.messages import LockDecision
from styx.state.table import NEWEST
from styx.testing.serial import SerialReference
from styx.values.codec import encode_strict
from tests.protocol import scripted_app

REQUESTS = 200
SLOTS = 4

counter = Operator("counter", key_type=str)
ledger = Operator("ledger", key_type=int)


@ledger.register
async def record(ctx: Context, number: int) -> None:
    """Keeps a number."""
    await ctx.put(number)


@ledger.register
async def hop(ctx: Context, number: int, left: int) -> None:
    """Adds the number to this entity and sends the sum on to the next one, so many times."""
    total = await ctx.get(0) + number
    await ctx.put(total)
    if left:
        ctx.call_async(ledger, hop, ctx.key + 1, (total, left - 1))


async def counted(ctx: Context) -> int:
    """Counts on this entity."""
    number: int = await ctx.get(0) + 1
    await ctx.put(number)
    return number


@counter.register
async def next_number(ctx: Context) -> int:
    """The number is the answer."""
    return await counted(ctx)


@counter.register
async def as_argument(ctx: Context, entry: int) -> int:
    """The number goes to another entity."""
    number = await counted(ctx)
    ctx.call_async(ledger, record, entry, (number,))
    return number


@counter.register
async def as_key(ctx: Context, entry: int) -> int:
    """The number is the key of another entity."""
    number = await counted(ctx)
    ctx.call_async(ledger, record, number, (entry,))
    return number


@counter.register
async def along(ctx: Context, entry: int, hops: int = 2) -> int:
    """The number goes through several entities."""
    number = await counted(ctx)
    ctx.call_async(ledger, hop, 1_000 * (1 + entry), (number, hops))
    return number


@ledger.register
async def as_result(ctx: Context) -> int:
    """The number is another entity's answer."""
    number: int = await ctx.call(counter, next_number, "c")
    await ctx.put(number)
    return number


app = App("travelling", [counter, ledger])


class Decisions:
    """What the coordinator has decided in lock phases: rounds and carried transactions."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rounds: list[int] = []
        self.carried = 0
        original = barrier.EpochBarriers._lock_round

        def lock_round(barriers: barrier.EpochBarriers, due: Any) -> LockDecision:
            decision = original(barriers, due)
            self.carried += sum(failure is None for _, failure in decision.excluded)
            if decision.final:
                self.rounds.append(decision.round + 1)
            return decision

        monkeypatch.setattr(barrier.EpochBarriers, "_lock_round", lock_round)


def run(requests: list[Request], app: App = app, n_slots: int = SLOTS) -> None:
    """Runs all requests and checks their replies, and the state, against the serial execution in TID order of their
    places.
    """
    loop = EngineLoop(app, n_slots)
    routed = [(resolve_request(app, each, Limits(), n_slots).slot, encode_request(each)) for each in requests]
    replies = sorted(map(decode_reply, loop.run(routed)), key=lambda each: (each.epoch, each.phase, each.tid))
    by_id = {each.request_id: each for each in requests}
    serial = SerialReference(app, n_slots=n_slots)
    for reply in replies:
        outcome = serial.run(reply.tid, 0, by_id[reply.request_id])
        assert (outcome.result, outcome.error) == (reply.result or None, reply.error)
    state = {}
    for slot in loop.worker.slots.values():
        state.update(slot.state.entities(NEWEST))
    assert state == serial.state


def request(number: int, operator: Operator, key: Any, function: Any, *params: Any) -> Request:
    return Request(f"r{number}", operator.name, key, function.__name__, encode_strict(list(params)))


@pytest.mark.parametrize(
    ("function", "rounds"),
    [(as_argument, 2), (as_key, 2), (as_result, 2), (along, 4)],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_a_number_that_travels_costs_rounds_and_no_epoch(
    function: Any, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    decisions = Decisions(monkeypatch)
    if function is as_result:
        run([request(number, ledger, number, function) for number in range(REQUESTS)])
    else:
        run([request(number, counter, "c", function, number) for number in range(REQUESTS)])
    assert decisions.carried == 0
    assert max(decisions.rounds) <= rounds


def test_a_long_line_of_calls_is_given_up_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    decisions = Decisions(monkeypatch)
    hops = PATCH_ROUNDS_MAX + 4
    requests = [request(number, counter, "c", as_argument, number) for number in range(REQUESTS)]
    requests[10] = request(10, counter, "c", along, 0, hops)
    run(requests)
    assert decisions.carried == 1
    assert max(decisions.rounds) == PATCH_ROUNDS_MAX + 2, (
        "the others had come to rest, and take its number when it leaves"
    )


def test_a_call_that_was_guessed_at_may_become_asynchronous(monkeypatch: pytest.MonkeyPatch) -> None:
    """`a1` changes in two rounds: at once, and when a number has come from `b2`."""
    decisions = Decisions(monkeypatch)
    scripts = [
        ("a0", "get"),  # an epoch of its own, in which the others arrive
        ("a1", "add 1"),
        ("c1", "get"),
        ("a1", "get; if 5 (send d2 (add 3)) (if 1 (ask d2 (add 2)) (ask d2 (add 1)))"),
        ("b2", "add 1"),
        ("b2", "add 1; if 2 (send a1 (add 10)) (send a1 (add 0))"),
    ]
    entity, function = scripted_app.entity, scripted_app.run
    run([request(n, entity, key, function, script) for n, (key, script) in enumerate(scripts)], scripted_app.app)
    assert (decisions.carried, decisions.rounds) == (0, [3])


@pytest.mark.parametrize("hops", [PATCH_ROUNDS_MAX + 4, 2 * PATCH_ROUNDS_MAX + 4])
def test_long_lines_that_most_transactions_make_are_not_given_up(hops: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them would cost an epoch, with as many rounds as there are in this one."""
    decisions = Decisions(monkeypatch)
    run([request(number, counter, "c", along, 0, hops) for number in range(40)])
    assert decisions.carried == 0
    assert max(decisions.rounds) <= hops + 12


def test_a_line_of_transactions_that_ends_is_not_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of some needs what the one before has made, there and back between slots, among many that do not."""
    decisions = Decisions(monkeypatch)
    shape = SHAPES["along_a_chain"]
    drawn = shape.requests(REQUESTS, 8, seed=1)
    run(
        [Request(f"r{n}", "counter", shape.name, shape.name, encode_strict([*each])) for n, each in enumerate(drawn)],
        travelling_numbers,
        8,
    )
    assert decisions.carried == 0
    assert PATCH_ROUNDS_MAX < max(decisions.rounds) < 3 * PATCH_ROUNDS_MAX


def test_the_rounds_of_long_lines_have_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    decisions = Decisions(monkeypatch)
    most = PATCH_ROUNDS_MAX * PATCH_ROUNDS_TIMES
    run([request(number, counter, "c", along, 0, most + 20) for number in range(6)])
    assert decisions.carried > 0
    assert most < max(decisions.rounds) <= most + PATCH_ROUNDS_MORE + 2
