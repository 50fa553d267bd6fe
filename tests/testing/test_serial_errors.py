"""What a bad request or a misbehaving function gets from the serial reference: an error that helps, nothing else."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from styx import App, Context, Limits, Operator
from styx.messages import Request
from styx.model.execution import Outcome
from styx.testing import MissingExternal, SerialReference

node = Operator("node")
tally = Operator("tally", key_type=int)
held: list[Any] = []
"""What a function kept after its end, or used to learn about itself."""


class Strict(msgspec.Struct):
    n: int

    def __post_init__(self) -> None:
        if self.n < 0:
            raise SystemExit("negative")


@tally.register
@node.register
async def put(ctx: Context, value: Any) -> None:
    await ctx.put(value)


@node.register
async def grow(ctx: Context, size: int) -> None:
    await ctx.put("x" * size)


@node.register
async def give(ctx: Context, size: int) -> bytes:
    return b"x" * size


@node.register
async def add(ctx: Context, amount: int, *, twice: bool = False) -> int:
    return amount * (2 if twice else 1)


@node.register
async def strict(ctx: Context, value: Strict) -> int:
    return value.n


@node.register
async def anything(ctx: Context, **values: Any) -> int:
    return len(values)


@node.register
async def unencodable(ctx: Context) -> object:
    return object()


@node.register
async def call(ctx: Context, kind: str, operator: str, function: str, key: Any, params: list[Any]) -> Any:
    await ctx.put("written before the call")
    if kind == "sync":
        return await ctx.call(operator, function, key, params)
    return ctx.call_async(operator, function, key, params)


@node.register
async def swallow(ctx: Context, then: str) -> str:
    try:
        await ctx.put({1, 2})
    except Exception:  # noqa: BLE001 - what a careless author writes
        held.append("swallowed")
    if then == "raise":
        raise ValueError("something else")
    if then == "call":
        await ctx.call(node, keep, "b")
    return "success"


@node.register
async def keep(ctx: Context) -> None:
    held.append(ctx)


@node.register
async def use_kept(ctx: Context) -> None:
    await held[0].put(1)


@node.register
async def lend(ctx: Context) -> Any:
    held.append(ctx)
    return await ctx.call(node, borrow, "b")


@node.register
async def borrow(ctx: Context) -> Any:
    return await held[0].call(node, "add", "c", (1,))


@node.register
async def mutate(ctx: Context, values: list[int]) -> int:
    ctx.call_async(node, put, "copy", (values,))
    values.clear()
    return len(values)


@node.register
async def foreign(ctx: Context) -> None:
    await ctx.put(1)
    await asyncio.sleep(0)


@node.register
async def loop(ctx: Context, operations: int) -> None:
    for _ in range(operations):
        await ctx.get()


@node.register
async def outside(ctx: Context) -> Any:
    await ctx.put("before")
    return await ctx.call_external(print, "an effect")


@node.register
async def throw(ctx: Context, name: str) -> None:
    await ctx.put(1)
    raise {
        "SystemExit": SystemExit(3),
        "KeyboardInterrupt": KeyboardInterrupt(),
        "GeneratorExit": GeneratorExit(),
        "CancelledError": asyncio.CancelledError(),
        "StopIteration": StopIteration(),
        "RuntimeError": RuntimeError([]),
    }[name]


app = App("test", [node, tally])


@pytest.fixture
def reference() -> SerialReference:
    held.clear()
    return SerialReference(app, Limits(value_bytes_max=100, operations_max=5))


def run(reference: SerialReference, function: str, *args: Any, operator: str = "node", key: Any = "a") -> Outcome:
    return reference.run(1, 0, Request("r", operator, key, function, msgspec.msgpack.encode(args)))


def failed(reference: SerialReference, outcome: Outcome, code: str, kind: str, *said: str) -> None:
    assert outcome.result is None
    assert outcome.error is not None
    assert outcome.error[:2] == (code, kind)
    for part in said:
        assert part in outcome.error[2]
    assert reference.state == {}


# Requests that cannot be run ---------------------------------------------------------------------------------


def test_unknown_names_are_rejected_and_the_known_ones_listed(reference: SerialReference) -> None:
    outcome = run(reference, "put", 1, operator="nodde")
    failed(reference, outcome, "unknown_operator", "UnknownOperator", "'nodde'", "node, tally")
    failed(reference, run(reference, "putt", 1), "unknown_function", "UnknownFunction", "'putt'", "put")


@pytest.mark.parametrize(
    ("operator", "key"), [("node", 1), ("node", ["n"]), ("tally", "1"), ("tally", 2**70), ("node", [1])]
)
def test_wrong_keys_are_rejected(reference: SerialReference, operator: str, key: Any) -> None:
    failed(reference, run(reference, "put", 1, operator=operator, key=key), "bad_arguments", "BadKey", operator)


@pytest.mark.parametrize(
    ("params", "said"),
    [
        (b"\x90", "amount"),
        (b"\x92\x01\x02", "2 positional"),
        (msgspec.msgpack.encode(["one"]), "'amount'"),
        (msgspec.msgpack.encode({"amont": 1}), "amount"),
        (b"\xc1", "array or a map"),
        (b"", "msgpack"),
        (b"\xc0", "array or a map"),
    ],
)
def test_wrong_arguments_are_rejected(reference: SerialReference, params: bytes, said: str) -> None:
    outcome = reference.run(1, 0, Request("r", "node", "a", "add", params))
    failed(reference, outcome, "bad_arguments", "BadArguments", "node.add", said)


def test_an_argument_type_that_raises_anything_is_a_wrong_argument(reference: SerialReference) -> None:
    failed(reference, run(reference, "strict", {"n": -1}), "bad_arguments", "BadArguments", "SystemExit", "negative")


def test_an_argument_named_like_the_context_is_a_wrong_argument(reference: SerialReference) -> None:
    params = msgspec.msgpack.encode({"ctx": 1})
    outcome = reference.run(1, 0, Request("r", "node", "a", "anything", params))
    failed(reference, outcome, "bad_arguments", "BadArguments", "ctx")


def test_oversized_arguments_are_rejected(reference: SerialReference) -> None:
    outcome = run(reference, "put", "x" * 200)
    failed(reference, outcome, "too_large", "ValueTooLarge", "params of node.put", "100")


def test_named_arguments_are_taken(reference: SerialReference) -> None:
    params = msgspec.msgpack.encode({"amount": 2, "twice": True})
    assert reference.run(1, 0, Request("r", "node", "a", "add", params)) == Outcome(b"\x04", None)


# Errors inside functions -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize(
    ("operator", "function", "key", "params", "error"),
    [
        ("nodde", "put", "b", [1], "UnknownOperator"),
        ("node", "putt", "b", [1], "UnknownFunction"),
        ("node", "put", 1, [1], "BadKey"),
        ("node", "put", "b", [], "BadArguments"),
        ("node", "put", "b", {"value": 1}, "UnsupportedValue"),
    ],
)
def test_the_same_errors_in_a_call_abort(
    reference: SerialReference, kind: str, operator: str, function: str, key: Any, params: Any, error: str
) -> None:
    wrong = node.functions["call"].func

    async def unchecked(ctx: Context) -> Any:
        return await wrong(ctx, kind, operator, function, key, params)

    probe = Operator("node")
    probe.register(unchecked)
    probe.register(node.functions["put"].func)
    reference.app = App("test", [probe])
    failed(reference, run(reference, "unchecked"), "aborted", error)


def test_an_oversized_state_aborts(reference: SerialReference) -> None:
    failed(reference, run(reference, "grow", 99), "aborted", "ValueTooLarge", "state of node['a']", "101 bytes")
    assert run(reference, "grow", 98).error is None


def test_an_oversized_or_unencodable_result_aborts(reference: SerialReference) -> None:
    failed(reference, run(reference, "give", 101), "aborted", "ValueTooLarge", "result of node.give", "103 bytes")
    failed(reference, run(reference, "unencodable"), "aborted", "UnsupportedValue", "result of node.unencodable")


def test_the_result_of_a_synchronous_call_must_be_encodable_that_of_an_asynchronous_one_need_not(
    reference: SerialReference,
) -> None:
    outcome = run(reference, "call", "sync", "node", "unencodable", "b", [])
    failed(reference, outcome, "aborted", "UnsupportedValue", "result of node.unencodable")
    assert run(reference, "call", "async", "node", "unencodable", "b", []).error is None


@pytest.mark.parametrize("then", ["return", "raise", "call"])
def test_a_swallowed_refusal_ends_the_transaction_all_the_same(reference: SerialReference, then: str) -> None:
    failed(reference, run(reference, "swallow", then), "aborted", "UnsupportedValue", "{1, 2}")
    assert held == ["swallowed"], "nothing runs after the refusal"


def test_a_context_is_closed_when_its_function_has_ended(reference: SerialReference) -> None:
    assert run(reference, "keep").error is None
    failed(reference, run(reference, "use_kept"), "aborted", "ContextClosed", "node.keep")


def test_waiting_through_another_invocations_context_is_refused(reference: SerialReference) -> None:
    outcome = run(reference, "lend")
    failed(reference, outcome, "aborted", "NondeterministicFunction", "in borrow", "another invocation")


@pytest.mark.parametrize("name", ["SystemExit", "KeyboardInterrupt", "GeneratorExit", "CancelledError", "RuntimeError"])
def test_every_exception_is_just_an_abort(reference: SerialReference, name: str) -> None:
    failed(reference, run(reference, "throw", name), "aborted", name)
    outcome = run(reference, "call", "sync", "node", "throw", "b", [name])
    failed(reference, outcome, "aborted", name)


def test_a_stop_iteration_is_an_abort_and_not_a_result(reference: SerialReference) -> None:
    failed(reference, run(reference, "throw", "StopIteration"), "aborted", "RuntimeError", "StopIteration")


def test_a_foreign_await_names_its_line(reference: SerialReference) -> None:
    line = node.functions["foreign"].func.__code__.co_firstlineno + 3
    outcome = run(reference, "foreign")
    failed(
        reference, outcome, "aborted", "NondeterministicFunction", f"test_serial_errors.py:{line} in foreign", "sleep"
    )


def test_an_endless_loop_over_the_state_ends(reference: SerialReference) -> None:
    assert run(reference, "loop", 5).error is None
    failed(reference, run(reference, "loop", 6), "aborted", "OperationLimitExceeded")


def test_a_mutated_argument_is_invisible_elsewhere(reference: SerialReference) -> None:
    request = Request("r", "node", "a", "mutate", msgspec.msgpack.encode([[1, 2]]))
    for _ in range(2):
        assert reference.run(1, 0, request) == Outcome(b"\x00", None)
        assert reference.value("node", "copy") == [1, 2]


# External functions -------------------------------------------------------------------------------------------


def test_a_missing_external_result_is_the_checkers_error(reference: SerialReference) -> None:
    with pytest.raises(MissingExternal, match="print"):
        run(reference, "outside")
    assert reference.state == {}


def test_external_results_and_exceptions_are_replayed(reference: SerialReference) -> None:
    with pytest.raises(MissingExternal) as missing:
        run(reference, "outside")
    reference.externals = {missing.value.key: ("TimeoutError", "the service is slow")}
    failed(reference, run(reference, "outside"), "aborted", "TimeoutError", "the service is slow")
    reference.externals = {missing.value.key: b"\x07"}
    assert run(reference, "outside") == Outcome(b"\x07", None)
    assert reference.value("node", "a") == "before"
