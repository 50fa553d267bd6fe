"""A coroutine's first step: what it gives, and that what waits can go on."""

from __future__ import annotations

import types
from collections.abc import Generator

import pytest

from styx.native.compiled import FirstSteps
from styx.native.interpreted import RETURNED


@types.coroutine
def waits(request: str) -> Generator[str, int, int]:
    return (yield request)


async def returns(value: int) -> int:
    return value


async def returns_what_it_waits_for() -> int:
    return await waits("a request")


async def raises() -> None:
    raise ValueError("its own")


def test_one_that_ends_gives_its_result() -> None:
    first_steps = FirstSteps()
    for value in (1, 2):
        assert first_steps.take(returns(value)) is RETURNED
        assert first_steps.result == [value]


def test_one_that_raises_raises_to_the_caller() -> None:
    first_steps = FirstSteps()
    with pytest.raises(ValueError, match="its own"):
        first_steps.take(raises())
    first_steps.renew()
    assert first_steps.take(returns(1)) is RETURNED


def test_one_that_waits_gives_its_request_and_goes_on_by_itself() -> None:
    first_steps = FirstSteps()
    coroutine = returns_what_it_waits_for()
    assert first_steps.take(coroutine) == "a request"
    kept = first_steps.renew()
    assert first_steps.take(returns(1)) is RETURNED
    with pytest.raises(StopIteration) as returned:
        coroutine.send(7)
    assert returned.value.value == 7
    kept.close()


def test_one_that_waits_and_is_not_kept_is_closed() -> None:
    first_steps = FirstSteps()
    coroutine = returns_what_it_waits_for()
    first_steps.take(coroutine)
    first_steps.renew()
    with pytest.raises(RuntimeError, match="cannot reuse"):
        coroutine.send(7)
