"""Ingests of the chaos app's versions, the functions that their records become, and random records.

A record is a `Told` in JSON, or what cannot become one. Its timestamp is its number, which no other record of the run
has, so that every record can be told from all others wherever it comes to lie. Versions differ in what they leave out,
in what they can decode, in the function and how often it is tried, and in the topic that they read.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Annotated, Any, Final, Literal

import msgspec

from proof.emit_steps import Happened, happened
from styx.model.agenda import Retry
from styx.model.context import Context
from styx.model.ingest import Ingest, IngestRecord
from styx.model.operator import Operator

CALLING: Final = "calling"
"""The ingest whose records become calls."""
EMITTING: Final = "emitting"
"""The ingest whose records become events."""
LANDED: Final = "landed"
"""The operator that is called: `(topic, partition)` has the numbers of the partition's records, as they came."""
TOPICS: Final = ("calls", "calls.elsewhere", "events")
"""`calling` reads the first one or, in every fifth version, the second; `emitting` reads the third."""
EVENT_NUMBERS: Final = 1_000_000
"""Numbers of events that records became begin here."""

Kind = Literal["steady", "busy", "shaky", "failing", "left", "choosy", "picky", "poison"]
"""What becomes of a record. `steady` ones are applied in their order, `busy` ones are applied. `failing` ones are set
aside when their call has failed, `shaky` ones are that or applied. `left` ones are left out, `choosy` ones by every
second version. `poison` is set aside, `picky` ones are by every third version.
"""
PLAIN: Final = 100
"""A version that is picky decodes numbers below."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_PAUSE: Final = timedelta(milliseconds=3)


class Told(msgspec.Struct):
    """The value of a record: `steps` run on an entity of the chaos app that `target` names."""

    kind: str
    size: int
    target: str
    steps: list[Any] = []


class _Picky(Told):
    size: Annotated[int, msgspec.Meta(lt=PLAIN)]


class Unwanted(Exception):
    """The function of an app said so."""


def topic_of(ingest: str, version: int) -> str:
    """The topic that a version reads."""
    if ingest == EMITTING:
        return TOPICS[2]
    return TOPICS[version % 5 == 4]


def register_landings(version: int, emitting: bool) -> list[Operator]:
    """The operators of a version that take records."""
    landed = Operator(LANDED, key_type=(str, int))
    odd = version % 2 == 1

    async def land(ctx: Context, number: int, told: Told) -> None:
        await ctx.put([*await ctx.get([]), number])
        if told.kind == "failing":
            raise Unwanted(told.kind)
        if told.steps:
            await ctx.call("text", "run", told.target, (told.steps, None))

    async def settle(ctx: Context, number: int, told: Told) -> None:
        """As `land`, whatever the version calls."""
        if told.steps:
            await ctx.call("text", "run", told.target, (told.steps, None))
        await land(ctx, number, msgspec.structs.replace(told, steps=[]))

    for function in (land, settle):
        landed.register(function)
    ingests = [
        Ingest(
            CALLING,
            topic=topic_of(CALLING, version),
            value=_Picky if version % 3 == 2 else Told,
            to=(landed, settle if odd else land),
            key=_key,
            params=lambda record: (number_of(record), record.value),
            where=_all_but("left", "choosy") if odd else _all_but("left"),
            retry=Retry(1 + version % 3, _PAUSE),
        )
    ]
    if emitting:
        ingests.append(
            Ingest(
                EMITTING,
                topic=topic_of(EMITTING, version),
                event=happened,
                value=Told,
                params=lambda record: (Happened(EVENT_NUMBERS + number_of(record), record.partition),),
                where=_all_but("left", "choosy") if odd else _all_but("left"),
                retry=Retry(2, _PAUSE),
            )
        )
    return [landed, *ingests]


def _key(record: IngestRecord[Told]) -> tuple[str, int]:
    if record.value.target == "nobody":
        raise LookupError(record.value.target)
    return record.topic, record.partition


def _all_but(*kinds: str) -> Callable[[IngestRecord[Told]], bool]:
    return lambda record: record.value.kind not in kinds


def number_of(record: IngestRecord[Any]) -> int:
    """The record's own number."""
    return (record.time - _EPOCH) // timedelta(milliseconds=1)


def random_record(rng: Random, ingest: str) -> tuple[Kind, bytes | None]:
    """A record's value, and what should become of it."""
    kinds: tuple[Kind, ...] = ("steady",) * 3 + ("busy", "shaky", "failing", "left", "choosy", "poison", "poison")
    kind: Kind = rng.choice((*kinds, "picky") if ingest == CALLING else ("steady",) * 3 + ("left", "choosy", "poison"))
    if kind == "poison":
        return kind, rng.choice(_POISON if ingest == CALLING else _POISON[:-1])
    steps: list[Any] = []
    if kind == "busy":
        steps = rng.choice([[["add", 1]], [["read"], ["mix", rng.randrange(100)]]])
    elif kind == "shaky":
        steps = [["add", 1], rng.choice([["guard", 500_000], ["read"]]), ["if", rng.randint(2, 5), [["raise"]], []]]
    told = Told(kind, PLAIN if kind == "picky" else rng.randrange(PLAIN), f"k{rng.randrange(4)}", steps)
    return kind, msgspec.json.encode(told)


_POISON: Final = (
    None,
    b"",
    b"{",
    b"\xff\xfe",
    b"[1]",
    b'{"kind": "steady", "size": NaN, "target": "k0"}',
    b'{"kind": "steady", "size": 1e400, "target": "k0"}',
    b'{"kind": "steady", "target": "k0"}',
    b"[" * 2_000,
    b'{"kind": "steady", "size": 1, "target": "nobody"}',
)
"""The last one has no key."""
