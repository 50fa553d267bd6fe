"""Every combination of what `@operator.on` takes, and of what the operator is: it is refused where it is declared, or
each event is heard once, and in the order that was asked for.
"""

from __future__ import annotations

from datetime import timedelta
from itertools import product
from typing import Any, Final, NamedTuple

import msgspec
import pytest

from styx import App, ConfigurationError, Context, Event, Operator, Retry
from styx.messages import Request
from styx.model.agenda import agenda_of
from styx.model.delivery import delivery_request
from styx.model.lane import lane_of
from styx.testing.serial import Place, SerialReference

NOW_US: Final = 10**15
GROUPS: Final[dict[str, Any]] = {
    "text": lambda event: "g",
    "number": lambda event: 7,
    "tuple": lambda event: ("g", 7),
}
KEYS: Final[dict[str, tuple[Any, Any]]] = {
    "text": (str, lambda event: "x"),
    "number": (int, lambda event: 5),
    "tuple": (tuple[str, int], lambda event: ("x", 5)),
}


class Options(NamedTuple):
    key_type: str
    key: bool
    after_commit: bool
    retry: bool
    ordered_by: str
    hint: str
    special: bool
    """The operator has a `partition_key`, a number of partitions and a `ttl`."""


_BOTH = (False, True)
_EVERY = [
    Options(*each)
    for each in product(KEYS, _BOTH, _BOTH, _BOTH, ("", *GROUPS), ("", "local", "read_only"), _BOTH)
    if not (each[3] and each[5])  # hints and attempts have nothing to do with each other
]


def declared(options: Options) -> App:
    said: Event[int] = Event("said", int)
    key_type, key = KEYS[options.key_type]
    source = Operator("source", key_type=key_type)
    heard = Operator(
        "heard",
        3 if options.special else None,
        key_type=key_type,
        partition_key=(lambda key: str(key)[:3]) if options.special else None,
        ttl=timedelta(days=1) if options.special else None,
    )

    @source.register
    async def say(ctx: Context, numbers: list[int]) -> None:
        for number in numbers:
            ctx.emit(said, number)

    async def hear(ctx: Context, event: int) -> None:
        if options.hint == "read_only":
            await ctx.get()
        else:
            await ctx.put([*await ctx.get([]), event])

    if options.hint:
        heard.register(**{options.hint: True})(hear)
    heard.on(
        said,
        key=key if options.key else None,
        after_commit=options.after_commit,
        retry=Retry(2) if options.retry else None,
        ordered_by=GROUPS.get(options.ordered_by),
    )(hear)
    return App("shop", [source, heard], events=[said])


def heard_by(app: App, options: Options) -> list[int]:
    """What is heard of two requests, whose calls for later are made in order."""
    reference = SerialReference(app)
    key: Any = {"text": "a", "number": 1, "tuple": ["a", 1]}[options.key_type]
    for tid, numbers in enumerate(([1, 2], [3])):
        request = Request(f"r{tid}", "source", key, "say", msgspec.msgpack.encode([numbers]))
        assert reference.run(tid, NOW_US, request, Place(1, 1)).error is None
    agendas = [agenda_of("source"), agenda_of("heard")]
    for call_id in sorted(reference.given):
        table, at = reference.given[call_id]
        if table in agendas and lane_of(call_id):  # and no end of a life
            delivery = delivery_request(table, at, call_id, NOW_US)  # type: ignore[arg-type]
            outcome = reference.run(10 + len(call_id), NOW_US, delivery, Place(2, 1, delivers=True))
            assert outcome.error is None, outcome
            assert reference.lanes.before(call_id) is None
    entity = KEYS[options.key_type][1](0) if options.key else (tuple(key) if isinstance(key, list) else key)
    return list(reference.value("heard", entity) or [])


def test_every_combination_is_refused_or_keeps_its_promise() -> None:
    for options in _EVERY:
        if not options.after_commit and (options.retry or options.ordered_by):
            with pytest.raises(ConfigurationError, match="add after_commit=True"):
                declared(options)
        else:
            wanted = [] if options.hint == "read_only" else [1, 2, 3]
            assert heard_by(declared(options), options) == wanted, options


def test_a_partition_key_that_takes_the_app_s_own_keys_alone() -> None:
    """Nobody knows the groups where they are declared: these are keys of the operator."""
    said: Event[str] = Event("said", str)
    heard = Operator("heard", partition_key=lambda key: {"lamp": 1, "shade": 2}[key])

    @heard.register
    async def say(ctx: Context) -> None:
        ctx.emit(said, ctx.key)

    @heard.on(said, after_commit=True, ordered_by=lambda event: event)
    async def hear(ctx: Context, event: str) -> None: ...

    reference = SerialReference(App("shop", [heard], events=[said]))
    for tid, key in enumerate(("lamp", "shade")):
        outcome = reference.run(tid, NOW_US, Request(f"r{tid}", "heard", key, "say", b"\x90"), Place(1, 1))
        assert outcome.error is None
    assert len(reference.given) == 2


def test_a_group_whose_key_partition_key_does_not_take() -> None:
    said: Event[int] = Event("said", int)
    source, heard = Operator("source"), Operator("heard", partition_key=lambda key: key.split("/")[1])

    @source.register
    async def say(ctx: Context) -> None:
        ctx.emit(said, 1)

    @heard.on(said, key=lambda event: "a/b", after_commit=True, ordered_by=lambda event: "ada")
    async def hear(ctx: Context, event: int) -> None: ...

    reference = SerialReference(App("shop", [source, heard], events=[said]))
    outcome = reference.run(1, NOW_US, Request("r", "source", "s", "say", b"\x90"), Place(1, 1))
    assert outcome.error is not None
    assert outcome.error[1:] == (
        "BadKey",
        "<heard.hear on 'said'>: the order of group 'ada' is kept beside the entity 'ada': partition_key of operator "
        "'heard' failed for 'ada': IndexError: list index out of range",
    )
