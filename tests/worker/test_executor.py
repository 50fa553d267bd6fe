"""The execution step on one worker: shares, waits, limits and failures, invocation by invocation.

What travels between workers is in the transcripts.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Sequence

import msgspec
import pytest

from styx import App, Context, Limits, Operator
from styx.messages import Reply
from styx.protocol.frames import Ack, Call, Drop, ExternalOutcome, Result
from styx.testing import embedded_cluster
from styx.values.codec import encode_strict
from styx.worker.executor import Executor
from styx.worker.root import RootTransaction
from styx.worker.slot import Slot
from styx.worker.validation import conflicts
from tests.worker.execution import OPERATOR, Execution, scripted_root, written_by


def test_a_transaction_is_done_when_all_its_branches_are() -> None:
    execution = Execution(2)
    executor = execution.executor
    executor.begin(0, [scripted_root(1, "a0", "send b1 (send a0 (put 1)); send c0 (put 2)")])
    steps = 0
    while not executor.idle:
        assert executor.open_roots == 1
        executor.run(1)
        steps += 1
    assert (steps, executor.open_roots, execution.root(1).count) == (4, 0, 4)


def test_a_slice_is_a_number_of_invocations() -> None:
    executor = Execution(1).executor
    executor.begin(0, [scripted_root(tid, "a0", "get") for tid in (1, 2, 3)])
    executor.run(2)
    assert executor.open_roots == 1
    executor.run(2)
    assert executor.idle


def test_everyone_sees_the_state_as_the_epoch_found_it() -> None:
    execution = Execution(1, {"a0": 10})
    execution.run({1: ("a0", "add 1"), 2: ("a0", "add 1")})
    assert (execution.result(1), execution.result(2)) == (11, 11)
    assert execution.numbers() == {"a0": 10}


def test_a_synchronous_chain_sees_its_own_writes_in_order() -> None:
    execution = Execution(2)
    execution.run({1: ("a0", "put 1; ask b1 (ask a0 (add 10)); add 100; ask a0 (get)")})
    assert execution.result(1) == 111


def test_requests_that_cannot_run_are_done_from_the_start() -> None:
    execution = Execution(1)
    root = scripted_root(1, "a0", "get")
    root.done = True
    execution.executor.begin(0, [root])
    assert execution.executor.idle
    assert execution.executor.open_roots == 0


# Failures ------------------------------------------------------------------------------------------------------


def test_the_first_failure_in_serial_order_is_the_transactions() -> None:
    execution = Execution(2)
    execution.run({1: ("a0", "send b1 (send c0 (fail early)); send a0 (fail late)")})
    failure = execution.root(1).failure
    assert failure is not None
    assert failure.message == "early"


def test_a_failed_functions_calls_are_never_made() -> None:
    execution = Execution(2)
    execution.run({1: ("a0", "send b1 (put 1); fail no")})
    assert execution.slots[1].footprints == {}


def test_a_caller_of_a_failed_callee_is_closed_with_its_finally_blocks() -> None:
    operator, seen = Operator("operator"), list[str]()

    @operator.register
    async def caller(ctx: Context) -> None:
        try:
            await ctx.call(operator, "callee", "b")
        finally:
            seen.append("closed")
            await ctx.put(1)

    @operator.register
    async def callee(ctx: Context) -> None:
        raise RuntimeError("no")

    executor, root = single(App("app", [operator]), "caller")
    executor.run(10)
    assert seen == ["closed"]
    assert root.failure is not None
    assert root.failure.type == "RuntimeError"
    assert not executor.slots[0].cells["operator"]["key"].written, "closed contexts write nothing"


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, GeneratorExit, StopAsyncIteration, MemoryError])
def test_no_exception_of_a_function_gets_out(error: type[BaseException]) -> None:
    operator = Operator("operator")

    @operator.register
    async def function(ctx: Context) -> None:
        raise error("no")

    executor, root = single(App("app", [operator]), "function")
    executor.run(10)
    assert root.failure is not None
    assert root.failure.message == "no" or error is StopAsyncIteration


def test_wrong_arguments_reject_a_request_and_abort_a_call() -> None:
    operator = Operator("operator")

    @operator.register
    async def strict(ctx: Context, number: int) -> None: ...

    @operator.register
    async def careless(ctx: Context) -> None:
        ctx.call_async(operator, "strict", "b", ("no number",))

    codes = []
    for function, params in (("strict", ["no number"]), ("careless", [])):
        executor, root = single(App("app", [operator]), function, params)
        executor.run(10)
        assert root.failure is not None
        assert root.failure.type == "BadArguments"
        codes.append(root.failure.code)
    assert codes == ["bad_arguments", "aborted"]


# The call limit ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("script", ["forever a0", "ask a0 (forever a0)", "send b1 (forever b1)"])
def test_too_many_functions_leave_the_epoch(script: str) -> None:
    execution = Execution(2, limits=Limits(invocations_max=5))
    execution.run({1: ("a0", script), 2: ("b0", "put 1")})
    assert execution.root(1).overflow
    assert not execution.root(2).overflow


def test_a_sum_over_the_limit_leaves_the_epoch_although_no_way_was_too_long() -> None:
    execution = Execution(2, limits=Limits(invocations_max=6))
    execution.run({1: ("a0", "send b1 (send c1 (get); send d1 (get)); send b0 (send c0 (get); send d0 (get))")})
    assert execution.root(1).overflow


def test_in_sequence_the_count_is_exact() -> None:
    script = "send b1 (send c1 (get)); send b0 (send c0 (get))"
    for limit, error in ((5, None), (4, "CallLimitExceeded")):
        execution = Execution(2, limits=Limits(invocations_max=limit))
        execution.run({1: ("a0", script)}, sequential=frozenset({1}))
        failure = execution.root(1).failure
        assert (None if failure is None else failure.type) == error


# Bytes count as calls ------------------------------------------------------------------------------------------

PADDING = "; ".join(["get"] * 20)
"""A script of over 96 bytes, which is what the arguments of a call to it have."""
LARGE = Limits(invocations_max=8, transaction_bytes_max=8 * 48)
"""Each such call counts as three; with the root two of them are within the limit."""


@pytest.mark.parametrize(
    ("script", "over"),
    [
        (f"ask a0 ({PADDING}); ask a0 ({PADDING})", False),
        (f"ask a0 ({PADDING}); ask a0 ({PADDING}); ask a0 ({PADDING})", True),
        (f"send a0 ({PADDING}); send b1 ({PADDING})", False),
        (f"send a0 ({PADDING}); send b1 ({PADDING}); send c0 ({PADDING})", True),
        # No way is too long: the sum at the root is.
        (f"send a0 (send b1 ({PADDING})); send c0 (send d0 ({PADDING}))", True),
    ],
)
def test_large_arguments_count_as_several_calls(script: str, over: bool) -> None:
    execution = Execution(2, limits=LARGE)
    execution.run({1: ("a0", script), 2: ("z0", "put 1")})
    assert execution.root(1).overflow is over
    assert not execution.root(2).overflow


NINE_BYTES = 2**62
RESULTS = Limits(invocations_max=9, transaction_bytes_max=9 * 9)
"""A call to an entity with `NINE_BYTES`, of which `get` is asked, counts as two: with the root four are within it."""


@pytest.mark.parametrize("key", ["b0", "b1"])
def test_large_results_count_as_calls(key: str) -> None:
    for calls, over in ((4, False), (5, True)):
        execution = Execution(2, {key: NINE_BYTES}, RESULTS)
        execution.run({1: ("a0", "; ".join([f"ask {key} (get)"] * calls))})
        assert execution.root(1).overflow is over


@pytest.mark.parametrize("key", ["b0", "b1"])
def test_in_sequence_bytes_count_exactly(key: str) -> None:
    one = f"send c0 (ask {key} (get))"  # 17 bytes of arguments: with them this is four calls
    for script, error in ((f"{one}; {one}", None), (f"{one}; {one}; send c0 (get)", "CallLimitExceeded")):
        execution = Execution(2, {key: NINE_BYTES}, RESULTS)
        execution.run({1: ("a0", script)}, sequential=frozenset({1}))
        failure = execution.root(1).failure
        assert (None if failure is None else failure.type) == error


def test_calls_of_one_slot_are_counted_together_while_they_run() -> None:
    """No way is over the limit, but all of them together: most are never made."""
    branch = "; ".join(["ask c0 (get)"] * 5)
    limits = Limits(invocations_max=20)
    execution = Execution(1, limits=limits)
    execution.run({1: ("a0", "; ".join([f"send b0 ({branch})"] * 10))})
    assert execution.root(1).overflow
    assert execution.executor.calls <= limits.invocations_max + 10


def test_what_arrives_for_a_dropped_transaction_does_nothing() -> None:
    execution = Execution(1)
    executor = execution.executor
    executor.begin(0, [])
    late = Call(9, 0, 0, 0, "entity", "run", "a0", encode_strict(["put 1"]), b"\0\0", b"\0\0", 1, 1, 0)
    for message in (Drop(9), late, Result(9, 0, b"\0\0\0\0", b"\x01", 2, []), Ack(9, 0, 1, 1, 1)):
        executor.deliver(message)
    executor.run(10)
    assert execution.footprint(9).invocations == []
    assert executor.outbox.take(1, 0, 0) == []


def test_a_drop_closes_what_waits() -> None:
    execution = Execution(2)
    execution.executor.owners = {0: 0, 1: 5}
    execution.executor.begin(0, [scripted_root(1, "a0", "put 1; ask b1 (get); put 2")])
    execution.executor.run(10)
    waiting = execution.footprint(1).invocations[0]
    assert waiting._coroutine is not None
    execution.executor.deliver(Drop(1))
    assert waiting._coroutine is None
    execution.executor.deliver(Result(1, 0, b"\0\0", b"\x01", 2, []))
    execution.executor.run(10)
    assert execution.executor.open_roots == 1, "the root's own worker has dropped it, not this message"


# Ends ----------------------------------------------------------------------------------------------------------


def test_an_epochs_end_leaves_the_garbage_collector_nothing_to_find() -> None:
    execution = Execution(2)
    execution.executor.owners = {0: 0, 1: 5}

    def epoch() -> None:
        roots = [scripted_root(1, "a0", "ask b0 (send c0 (add 1)); fail no"), scripted_root(2, "a0", "ask b1 (get)")]
        roots.append(scripted_root(3, "d0", "outside pay"))
        roots[-1].sequential = True
        execution.executor.begin(0, roots)
        execution.executor.run(10)
        execution.executor.end()

    for _ in range(3):  # compiled, the last object of a kind may be kept for the next one, and what it refers to:
        epoch()
        gc.collect()  # what other tests have left, which may itself end as such an object
    objects = len(gc.get_objects())
    gc.disable()
    try:
        for _ in range(10):
            epoch()
        assert gc.collect() == 0
        assert len(gc.get_objects()) < objects + 10, "circles that the collector does not see"
    finally:
        gc.enable()


def test_a_contended_function_is_left_to_the_lock_phase_and_is_in_nobodys_way() -> None:
    execution = Execution(1, {"a0": 5})
    execution.run(
        {1: ("a0", "add 1; send b0 (add 1)"), 2: ("a0", "get; put it"), 3: ("a0", "get")}, contended=frozenset({1, 3})
    )
    assert [execution.root(tid).collided for tid in (1, 2, 3)] == [True, False, True]
    assert all(execution.root(tid).done for tid in (1, 2, 3))
    assert execution.executor.calls == 1
    assert execution.result(2) == 5
    assert execution.footprint(1).invocations[0]._calls is None, "it has run"
    assert conflicts(execution.slots[0], ()) == []


def test_a_contended_function_in_sequence_runs_like_any_other() -> None:
    execution = Execution(2, {"a0": 5})
    execution.run({1: ("a0", "add 1; send b1 (add 1)")}, sequential=frozenset({1}), contended=frozenset({1}))
    assert (execution.root(1).collided, execution.root(1).count, execution.result(1)) == (False, 2, 6)
    assert written_by(execution.slots[1], 1) == {(OPERATOR, "b1")}


def test_an_epoch_must_be_over_before_the_next_begins() -> None:
    executor = Execution(1).executor
    executor.begin(0, [scripted_root(1, "a0", "get")])
    with pytest.raises(AssertionError, match="last one's work"):
        executor.begin(0, [])


# External functions ---------------------------------------------------------------------------------------------


def test_an_outside_call_ends_its_chain_until_there_is_an_outcome() -> None:
    execution = Execution(1)
    execution.run({1: ("a0", "outside pay")})
    assert execution.root(1).external
    assert execution.footprint(1).pending_external is None, "first it comes back in sequence"
    execution.executor.end()
    execution.run({1: ("a0", "outside pay")}, sequential=frozenset({1}))
    pending = execution.footprint(1).pending_external
    assert pending is not None
    assert pending.args == ("pay",)
    root = scripted_root(1, "a0", "outside pay; add it")
    root.sequential, root.externals = True, {pending.key: msgspec.msgpack.encode(ExternalOutcome(b"\x07"))}
    execution.executor.end()
    execution.executor.begin(0, [root])
    execution.executor.run(10)
    assert execution.result(1) == 7


def single(app: App, function: str, params: Sequence[object] = ()) -> tuple[Executor, RootTransaction]:
    """An executor with one transaction of `function` on one slot, not yet run."""
    executor = Executor(0, app, Limits(), 1)
    executor.owners, executor.slots = {0: 0}, {0: Slot(0)}
    found = app.resolve("operator", function)
    root = RootTransaction(1, 0, 0, 0, b"", "r", 0, found, "key", encode_strict(list(params)))
    executor.begin(0, [root])
    return executor, root


def test_storing_the_context_itself_is_refused_in_the_same_words_everywhere() -> None:
    operator = Operator("operator")

    @operator.register
    async def keep(ctx: Context) -> None:
        await ctx.put(ctx)

    async def ask() -> Reply:
        # The block ends with a serial replay, which compares every reply.
        async with embedded_cluster(App("app", [operator])) as cluster:
            return await cluster.request("operator", "key", "keep")

    reply = asyncio.run(ask())
    assert reply.error is not None
    assert "type Context" in reply.error.message
