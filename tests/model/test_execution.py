"""The decisions that the engine and its checker share, one by one."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine, Generator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from styx import App, Context, Limits, Operator
from styx.errors import BadKey, UnknownFunction, UnknownOperator, UnsupportedValue, ValueTooLarge
from styx.messages import Request
from styx.model.cell import Cell, Environment
from styx.model.context import encode_params
from styx.model.execution import (
    aborted,
    close_quietly,
    encode_result,
    failure_of,
    foreign_await_error,
    rejection,
    resolve_request,
    unfinished,
)
from styx.model.function_spec import MadeCall
from styx.native.compiled import transaction_limits

node = Operator("node", key_type=(int, int), partition_key=lambda key: key[0])


@node.register
async def nothing(ctx: Context) -> None:
    pass


app = App("test", [node])
LIMITS = Limits(value_bytes_max=10)


def request(operator: str = "node", key: Any = None, function: str = "nothing", params: bytes = b"\x90") -> Request:
    return Request("r", operator, key or [1, 2], function, params)


# Requests ------------------------------------------------------------------------------------------------------


def test_a_request_is_resolved_to_its_function_key_and_slot() -> None:
    target = resolve_request(app, request(key=[1, 2]), LIMITS, 4)
    assert (target.function, target.key) == (node.functions["nothing"], (1, 2))
    assert target.slot == node.partition_of((1, 2), 4) % 4
    assert target.slot == resolve_request(app, request(key=[1, 3]), LIMITS, 4).slot


@pytest.mark.parametrize(
    ("wrong", "error", "code"),
    [
        (request(operator="edon"), UnknownOperator, "unknown_operator"),
        (request(function="nothin"), UnknownFunction, "unknown_function"),
        (request(key="text"), BadKey, "bad_arguments"),
        (request(params=b"\xc4\x0a" + b"x" * 10), ValueTooLarge, "too_large"),
    ],
)
def test_a_request_that_cannot_run_is_rejected_by_code(wrong: Request, error: type[Any], code: str) -> None:
    with pytest.raises(error) as raised:
        resolve_request(app, wrong, LIMITS, 4)
    assert rejection(raised.value) == (code, error.__name__, str(raised.value))
    assert aborted(raised.value)[0] == "aborted", "the same error inside a function is an abort"


# Results and errors --------------------------------------------------------------------------------------------


def test_results_are_encoded_up_to_the_limit() -> None:
    limits = transaction_limits(LIMITS)
    assert encode_result(node.functions["nothing"], None, limits) == b"\xc0"
    assert len(encode_result(node.functions["nothing"], "x" * 9, limits)) == 10
    with pytest.raises(ValueTooLarge, match=r"the result of node\.nothing has 11 bytes; the limit is 10"):
        encode_result(node.functions["nothing"], "x" * 10, limits)
    with pytest.raises(UnsupportedValue, match=r"the result of node\.nothing"):
        encode_result(node.functions["nothing"], object(), limits)


class Unhashable(type):
    """A type of types that compare, and so have no hash."""

    def __eq__(cls, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


def test_a_result_of_a_type_without_a_hash_is_an_error_like_any() -> None:
    strange = Unhashable("Strange", (), {})()
    with pytest.raises(UnsupportedValue, match=r"the result of node\.nothing"):
        encode_result(node.functions["nothing"], strange, transaction_limits(LIMITS))
    with pytest.raises(UnsupportedValue, match=r"params of node\.nothing"):
        encode_params(node.functions["nothing"], (strange,))


def test_an_outcome_keeps_text_only() -> None:
    assert aborted(SystemExit(3)) == ("aborted", "SystemExit", "3")


def test_a_swallowed_engine_error_wins() -> None:
    context = Context((1, 2), Environment(), node.functions["nothing"], Cell(), b"", b"", 1)
    other = ValueError()
    assert unfinished(context) is None
    assert failure_of(context, other) is other
    context._doom = UnsupportedValue("lost")
    assert unfinished(context) is context._doom
    assert failure_of(context, other) is context._doom


class OneSlot(Environment):
    def __init__(self) -> None:
        self.app = app
        self.limits = transaction_limits(Limits())
        self.n_slots = 1


def test_a_doomed_function_makes_no_call_that_it_would_wait_for() -> None:
    context = Context((1, 2), OneSlot(), node.functions["nothing"], Cell(), b"", b"", 1)
    for doom, made in ((None, 1), (UnsupportedValue("lost"), 1)):
        context._doom = doom
        waiting = context.call(node, nothing, (1, 3))
        waiting.send(None)
        waiting.close()
        assert len(context._made) == made


def test_what_a_function_runs_on_cannot_be_changed() -> None:
    context = Context((1, 2), Environment(), node.functions["nothing"], Cell(), b"", b"", 1)
    for name in ("key", "operator", "transaction_id", "partition", "state", "other"):
        with pytest.raises(AttributeError):
            setattr(context, name, (1, 3))
    assert context.key == (1, 2)


def test_a_function_that_calls_nothing_shares_no_list_of_calls() -> None:
    """What is appended to one's calls would be called by everybody who called nothing."""
    one, other = (Context((1, 2), Environment(), node.functions["nothing"], Cell(), b"", b"", 1) for _ in range(2))
    with contextlib.suppress(AttributeError):
        one._calls.append(MadeCall(False, 0, node.functions["nothing"], (1, 2), b"\x90"))  # type: ignore[union-attr]
    assert not other._calls
    assert list(other._made) == []


# Closing -------------------------------------------------------------------------------------------------------


class Pause:
    """Something foreign to wait for."""

    def __await__(self) -> Generator[object, None, None]:
        yield self


async def raises_in_finally() -> None:
    try:
        await Pause()
    finally:
        raise KeyboardInterrupt


async def ignores_three_closings() -> None:
    for _ in range(3):
        try:
            await Pause()
        except GeneratorExit:
            continue


@pytest.mark.parametrize("function", [raises_in_finally, ignores_three_closings])
def test_closing_is_quiet_and_complete(function: Any) -> None:
    coroutine = function()
    coroutine.send(None)
    close_quietly(coroutine)
    with pytest.raises(RuntimeError, match="cannot reuse"):
        coroutine.send(None)


# Foreign awaits ------------------------------------------------------------------------------------------------


def message_of(coroutine: Coroutine[Any, Any, Any]) -> str:
    yielded = coroutine.send(None)
    message = str(foreign_await_error(coroutine, yielded))
    close_quietly(coroutine)
    return message


def line_of(function: Any, offset: int) -> str:
    return f"test_execution.py:{function.__code__.co_firstlineno + offset} in {function.__qualname__} awaits "


async def helper() -> None:
    await asyncio.sleep(0)


async def through_a_helper() -> None:
    await helper()


async def waits_for_its_own_object() -> None:
    await Pause()


async def sleeps_a_second() -> None:
    await asyncio.sleep(1)


async def endless() -> AsyncIterator[int]:
    await Pause()
    yield 1


async def iterates() -> None:
    async for _ in endless():
        pass


def test_the_deepest_line_of_the_author_is_named() -> None:
    assert message_of(through_a_helper()).startswith(line_of(helper, 1) + "asyncio.tasks.sleep;")


def test_an_awaitable_is_named_by_its_type() -> None:
    message = message_of(waits_for_its_own_object())
    assert message.startswith(
        f"test_execution.py:{Pause.__await__.__code__.co_firstlineno + 1} in Pause.__await__ awaits "
    )
    assert message.split(";")[0].endswith(".Pause")


def test_an_asynchronous_generator_is_named_by_the_line_that_waits_for_it() -> None:
    assert message_of(iterates()).startswith(line_of(iterates, 1))


def test_a_sleep_gives_the_same_error_with_and_without_an_event_loop() -> None:
    with pytest.raises(RuntimeError) as refused:
        sleeps_a_second().send(None)

    async def inside() -> str:
        return message_of(sleeps_a_second())

    message = asyncio.run(inside())
    assert message.startswith(line_of(sleeps_a_second, 1) + "asyncio.tasks.sleep;")
    assert aborted(refused.value) == ("aborted", "NondeterministicFunction", message)


@pytest.mark.parametrize("error", [RuntimeError(), RuntimeError([]), RuntimeError("no running event loop", 1)])
def test_other_runtime_errors_stay_what_they_are(error: RuntimeError) -> None:
    assert aborted(error)[1] == "RuntimeError"


def test_replies_name_no_directory() -> None:
    assert str(Path(__file__).parent) not in message_of(through_a_helper())


def test_params_stay_encoded_until_a_function_starts() -> None:
    assert resolve_request(app, request(params=msgspec.msgpack.encode([1])), LIMITS, 4).key == (1, 2)
