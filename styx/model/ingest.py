"""An ingest: an operator of the engine's own whose entities are the partitions of a topic that others own.

`styx ingest` reads the topic and sends what stands there, as it stands, to these entities. Their state is how far the
topic is taken, so a record that comes twice is taken once. Each record becomes a transaction of its own behind the one
that took it, and there it is decoded and becomes a call of a function of the app. What happens then is in
`styx.model.ingest_functions`. An ingest reads no topic itself.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Generic, Literal, TypeVar

import msgspec

from styx.errors import BadRecord, ConfigurationError, UnknownFunction, describe
from styx.model.agenda import USUAL_RETRY, Retry
from styx.model.event import Event
from styx.model.ingest_functions import COUNTS, RECORD, Count, IngestFunctions
from styx.model.ingest_position import Position, RawRecord
from styx.model.operator import Operator
from styx.model.record_format import Decode, RecordFormat, format_of
from styx.values.codec import decode_plain, encode_strict, shown
from styx.values.declared_types import check_declared

TOPIC_CHARS_MAX: Final = 249
"""Kafka's own limit."""
STARTS: Final = ("earliest", "latest")

_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]++")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

V = TypeVar("V")


class IngestRecord(msgspec.Struct, Generic[V], frozen=True, kw_only=True):
    """A record of a foreign topic, as the functions of an `Ingest` get it.

    `value` is decoded, and of the declared type if there is one. `key` is as it stands in the topic, None without one.
    `headers` has the last one of each name. `time` is Kafka's timestamp, in UTC.
    """

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: V
    headers: dict[str, bytes | None]
    time: datetime


class Made(msgspec.Struct, frozen=True):
    """The call that a record becomes; `wanted` is False if `where=` leaves the record out."""

    wanted: bool
    key: Any = None
    params: tuple[Any, ...] = ()


class Ingest(Operator):
    """Turns the records of a Kafka topic that others own into calls; it stands among the app's operators.

        payments = Ingest("payments", topic="bank.payments", value=Payment, to=(account, paid),
                          key=lambda record: record.value.account)
        app = App("shop", [account, payments])

    Parameters
    ----------
    name: as an operator's; the topic's offsets and what could not be handled are kept under it.
    topic: the topic's name. With another topic under the same name, that one is read from its own start.
    to: an operator of the app and a function of it that is registered already, itself or its name.
    event: in place of `to`, an event of the app, which is emitted with the record's value.
    key: makes the key of the entity to be called of an `IngestRecord`, or with `event` the key at which it is emitted;
    only with `event` it may be left out: then the events are in the order of the topic's partition.
    value: the type of the records' values; None: plain data, or the event's type.
    format: "json", "msgpack", "text", "bytes", or an `Avro(…)` or `Protobuf(…)` of `styx.formats`.
    params: makes the tuple of arguments of an `IngestRecord`, with `event` a tuple of its value; None: the record's
    value is the only one.
    where: records for which it gives False are left out, and counted; None: none are.
    start: where reading begins when the topic is read for the first time, "earliest" or "latest".
    retry: how often the call of a record is tried that is aborted.

    The functions are plain and deterministic; if they raise, the record is set aside with the reason. Raises
    `ConfigurationError` at once for what could only fail later.
    """

    served = False

    def __init__(
        self,
        name: str,
        *,
        topic: str,
        to: tuple[Operator, Any] | None = None,
        event: Event[Any] | None = None,
        key: Callable[[IngestRecord[Any]], Any] | None = None,
        value: Any = None,
        format: Literal["json", "msgpack", "text", "bytes"] | RecordFormat = "json",
        params: Callable[[IngestRecord[Any]], Iterable[Any]] | None = None,
        where: Callable[[IngestRecord[Any]], bool] | None = None,
        start: Literal["earliest", "latest"] = "earliest",
        retry: Retry = USUAL_RETRY,
    ) -> None:
        super().__init__(name, key_type=(str, int), state_type=Position)
        if not isinstance(topic, str) or not _TOPIC.fullmatch(topic) or len(topic) > TOPIC_CHARS_MAX:
            raise self._wrong(
                f"topic= is the name of a Kafka topic, letters, digits, '.', '_' and '-', at most {TOPIC_CHARS_MAX} "
                f"characters: got {shown(topic)}"
            )
        if start not in STARTS:
            raise self._wrong(f"start= is 'earliest' or 'latest', got {shown(start)}")
        if not isinstance(retry, Retry):
            raise self._wrong(f"retry= is a styx.Retry, such as Retry(attempts=3), got {shown(retry)}")
        for what, function in (("key", key), ("params", params), ("where", where)):
            if (function is not None or (what == "key" and event is None)) and not callable(function):
                missing = "key= is missing: the entity that is called has a key, made of an IngestRecord"
                got = f"{what}= is a function of an IngestRecord, got {shown(function)}"
                raise self._wrong(missing if function is None else got)
        if (to is None) == (event is None):
            raise self._wrong("it has either to=(operator, function), or event=, an event of the app")
        if event is not None and not isinstance(event, Event):
            raise self._wrong(f"event= is a styx.Event, got {shown(event)}")
        self.topic = topic
        self.start = start
        self.retry = retry
        self.to: Operator | None = None
        self.to_function = ""
        if event is None:
            self.to, self.to_function = self._checked_target(to, params is None)
            self.calls = (self.to,)
        else:
            self.emits = (event,)
        self.event = event
        self.value = value if value is not None or event is None else event.type
        self.deciding = tuple(each for each in (key, params, where) if each is not None)
        """The app's functions, which decide what becomes of a record."""
        self._key, self._params, self._where = key, params, where
        self._decode = self._decoder(format)
        self.given: dict[str, Any] = {
            "name": name,
            "topic": topic,
            "to": None if self.to is None else (self.to, self.to_function),
            "event": event,
            "key": key,
            "value": value,
            "format": format,
            "params": params,
            "where": where,
            "start": start,
            "retry": retry,
        }
        """The arguments, by name."""
        self.counts = self.table(COUNTS, Count, key="name")
        functions = IngestFunctions(self)
        for registered in (functions.begin, functions.take, functions.record, functions.settled):
            super().register(registered)
        for moved in (functions.renew, functions.skip, functions.shorten):
            super().register(moved)
        super().register(read_only=True)(functions.position)

    def made(self, topic: str, partition: int, raw: RawRecord) -> Made:
        """The call that a record of a topic becomes, which an earlier version may have taken from another topic than is
        read now. Raises `BadRecord` with the reason if it can become none.
        """
        if raw.too_large:
            raise BadRecord(
                f"{_place(topic, partition, raw.offset)} has {raw.too_large} bytes, which no request has room for"
            )
        what = "where="
        try:
            record = self._read(topic, partition, raw)
            if self._where is not None and not self._where(record):
                return Made(False)
            what = "key="
            key = None if self._key is None else self._key(record)
            if self.to is not None:
                key = self.to.check_key(key)
            what = "params="
            params = (record.value,) if self._params is None else tuple(self._params(record))
            if self.event is not None:
                (value,) = params
                self.event.encode(value)
            return Made(True, key, params)
        except BadRecord:
            raise
        except Exception as error:  # noqa: BLE001 - code of the app and of decoders
            raise _bad(topic, partition, raw, f": {what} of ingest {self.name!r}", error) from None

    def again(self, function: str, params: bytes) -> bytes:
        """As `Operator.again`: a record that was set aside is decoded once more."""
        arguments = decode_plain(params)
        return encode_strict([arguments[0], True]) if function == RECORD and len(arguments) > 1 else params

    def _read(self, topic: str, partition: int, raw: RawRecord) -> IngestRecord[Any]:
        try:
            if raw.value is None:
                raise ValueError("it has no value (a tombstone)")
            value = self._decode(raw.value)
            time = _EPOCH + timedelta(milliseconds=raw.time_ms)
        except Exception as error:  # noqa: BLE001 - a type's own code runs, and any decoder
            raise _bad(topic, partition, raw, " cannot be decoded", error) from None
        return IngestRecord(
            topic=topic,
            partition=partition,
            offset=raw.offset,
            key=raw.key,
            value=value,
            headers=dict(raw.headers),
            time=time,
        )

    def _decoder(self, format: Any) -> Decode:
        try:
            if self.value is not None:
                check_declared(self.value)
            return format_of(format).decoder(self.value)
        except ConfigurationError as error:
            raise self._wrong(str(error)) from None
        except Exception as error:  # noqa: BLE001 - whatever msgspec says is the declaration's fault
            raise self._wrong(f"value= {shown(self.value)}: {error}") from None

    def _checked_target(self, to: Any, alone: bool) -> tuple[Operator, str]:
        """The operator, and the name of its function. `alone`: the function gets the value and nothing else."""
        if not isinstance(to, tuple) or len(to) != 2 or not isinstance(to[0], Operator) or isinstance(to[0], Ingest):
            raise self._wrong(f"to= is (an operator of the app, a function of it), got {shown(to)}")
        operator, wanted = to
        try:
            function = operator.function(wanted)
        except UnknownFunction as error:
            raise self._wrong(f"to=: {error}; declare the ingest behind the functions") from None
        if function.read_only:
            raise self._wrong(f"to=: {operator.name}.{function.name} is read-only, so a record would change nothing")
        if alone and not _takes_one(function.func):
            raise self._wrong(
                f"{operator.name}.{function.name} is called with the record's value alone, which does not fit its "
                "parameters: give params=lambda record: (…)"
            )
        return operator, function.name

    def _wrong(self, text: str) -> ConfigurationError:
        return ConfigurationError(f"ingest {self.name!r}: {text}")

    def __repr__(self) -> str:
        return f"Ingest({self.name!r}, topic={self.topic!r})"


def _bad(topic: str, partition: int, raw: RawRecord, what: str, error: Exception) -> BadRecord:
    return BadRecord(f"{_place(topic, partition, raw.offset)}{what}: {': '.join(filter(None, describe(error)))}")


def _place(topic: str, partition: int, offset: int) -> str:
    return f"the record at offset {offset} of {topic}, partition {partition}"


def _takes_one(function: Callable[..., Any]) -> bool:
    try:
        inspect.signature(function).bind(None, None)
    except TypeError:
        return False
    return True
