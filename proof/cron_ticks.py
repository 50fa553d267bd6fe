"""Crons of `proof.chaos_app` and its versions, and what has to be true of their ticks.

They are declared only while a plan with crons runs, so that others have none. A version may have another expression
than the one before, or none. What is checked relies on the ticks that functions have seen, not on the code of crons.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final

from styx.model.agenda import Retry, agenda_of, dead_of, decode_entry, entry_key
from styx.model.app import App
from styx.model.context import Context
from styx.model.cron import Cron, begins, declared_cron, is_cron_key, is_gone
from styx.model.operator import Operator
from styx.model.table_names import holds_agenda
from styx.state.table import NEWEST
from styx.worker.worker import Worker

OPERATOR: Final = "text"
KEY: Final = "ticks"
SECOND_US: Final = 1_000_000
CLOCK_ERROR_US: Final = 500_000
"""A process's clock is wrong by less."""
_EXPRESSIONS: Final = ("* * * * * *", "*/2 * * * * *", None)
"""Of `tick`, by version; seconds come first."""

_declared: list[list[Operator]] = []
"""For each block, the operators that have crons in it."""


@contextmanager
def declared(wanted: bool) -> Iterator[None]:
    """In the block, apps that `with_ticks` is given have crons, if they are `wanted`; behind it none has."""
    if not wanted:
        yield
        return
    _declared.append([])
    try:
        yield
    finally:
        for operator in _declared.pop():
            operator.crons.clear()


def register_ticks(operator: Operator) -> None:
    """Adds the functions that crons call."""
    for function in (tick, tock):
        operator.register(function)


def with_ticks(app: App, version: int) -> App:
    """The app, which has crons now if it is to have them."""
    operator = app.operators[OPERATOR]
    operator.crons.clear()
    if _declared:
        _declared[-1].append(operator)
        for cron in _crons(operator, version):
            operator.crons[cron.key, cron.function] = cron
    return app


def _crons(operator: Operator, version: int) -> Iterator[Cron]:
    def made(function: str, expression: str, key: str) -> Cron:
        return declared_cron(operator.key_space, function, expression, key, Retry(2, _PAUSE))

    expression = expression_of(version)
    if expression is not None:
        yield made("tick", expression, KEY)
    yield made("tock", "* * * * * *", "a")


_PAUSE: Final = timedelta(milliseconds=3)


def expression_of(version: int) -> str | None:
    """When a version has `tick` called."""
    return _EXPRESSIONS[version % len(_EXPRESSIONS)]


async def tick(ctx: Context) -> None:
    """Keeps its time."""
    await ctx.put([*await ctx.get([]), round(ctx.now().timestamp() * 1_000_000)])


async def tock(ctx: Context) -> None:
    """Fails in odd seconds; else it has another one keep its time."""
    if round(ctx.now().timestamp()) % 2:
        raise ValueError("an odd second")
    ctx.call_async(OPERATOR, tick, KEY + "'")


def nothing_waits(core: Worker) -> bool:
    """Whether a worker has no call for later but ticks that are not due."""
    if core.deliveries.has_due():
        return False
    agendas = [
        table.at(NEWEST)
        for slot in core.slots.values()
        for name, table in slot.state.tables.items()
        if holds_agenda(name)
    ]
    entries = [(key, data) for agenda in agendas for key, data in agenda.items()]
    return all(is_cron_key(key) and not begins(decode_entry(data)) for key, data in entries)


def of_others(state: Mapping[tuple[str, Any], bytes]) -> dict[tuple[str, Any], bytes]:
    """What no tick changes: time goes on while everything recovers."""
    own = {(OPERATOR, KEY), (OPERATOR, KEY + "'")}
    tables = (agenda_of(OPERATOR), dead_of(OPERATOR))
    return {entity: data for entity, data in state.items() if entity not in own and entity[0] not in tables}


def check_ticks(app: App, version: int, state: Mapping[tuple[str, Any], bytes], now_us: int) -> int:
    """Holds the ticks that were seen against the time; returns how many there were. Raises `AssertionError`."""
    operator = app.operators[OPERATOR]
    seen = 0
    for key in (KEY, KEY + "'"):
        data = state.get((OPERATOR, key))
        ticks = [] if data is None else operator.decode_state(data)
        assert all(sooner < later for sooner, later in itertools.pairwise(ticks)), f"a tick twice: {ticks}"
        assert all(tick_us % SECOND_US == 0 for tick_us in ticks), f"what is no tick: {ticks}"
        assert not ticks or ticks[-1] <= now_us + CLOCK_ERROR_US, f"a tick before its time, {now_us}: {ticks}"
        seen += len(ticks)
    table = agenda_of(OPERATOR)
    found = {
        key
        for (name, key), data in state.items()
        if name == table and str(key[-1]).startswith("*") and not is_gone(decode_entry(data))
    }
    expected = {cron.place for cron in _crons(operator, version)}
    assert found == expected, f"the crons are {expected}, and the agenda has {found}"
    for place in expected:
        due_us = decode_entry(state[table, place]).due_us
        latest_us = now_us + CLOCK_ERROR_US + 2 * SECOND_US  # its clock may be ahead
        assert now_us - 2 * SECOND_US < due_us <= latest_us, f"{place} is due at {due_us}: it is {now_us}"
    assert entry_key(KEY, "*tick") in found or expression_of(version) is None
    return seen
