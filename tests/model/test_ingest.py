"""The declaration of an ingest: what is refused, and the call that a record becomes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from styx import App, ConfigurationError, Context, Event, Ingest, Operator
from styx.errors import BadRecord
from styx.formats import Avro, Protobuf
from tests.model.ingest_app import TOPIC, Payment, made_app, pay, raw

account = Operator("account")


@account.register
async def paid(ctx: Context, payment: Payment) -> None:
    await ctx.put(payment.amount)


@account.register
async def paid_twice(ctx: Context, account: str, amount: int) -> None:
    await ctx.put(amount)


@account.register(read_only=True)
async def balance(ctx: Context, payment: Payment) -> int:
    return await ctx.get(0)  # type: ignore[no-any-return]


class Unfit:
    """What nothing can be converted to."""


_OTHER = made_app()[1]

WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no topic": ({"topic": ""}, "topic= is the name of a Kafka topic"),
    "a topic with a blank": ({"topic": "bank payments"}, "got 'bank payments'"),
    "a topic's address": ({"topic": "kafka://host/payments"}, "topic= is the name"),
    "a long topic": ({"topic": "t" * 250}, "at most 249"),
    "a topic that is no text": ({"topic": 7}, "got 7"),
    "to: a function alone": ({"to": paid}, "to= is .an operator of the app, a function of it"),
    "to: a text": ({"to": "account.paid"}, "to= is"),
    "to: a list": ({"to": [account, paid]}, "to= is"),
    "to: three things": ({"to": (account, paid, 1)}, "to= is"),
    "to: an operator's name": ({"to": ("account", "paid")}, "to= is"),
    "to: another ingest": ({"to": (_OTHER, "take")}, "to= is"),
    "to: a function that is not there": ({"to": (account, "pay")}, "declare the ingest behind the functions"),
    "to: a function of another operator": ({"to": (account, made_app)}, "has no function"),
    "to: a read-only function": ({"to": (account, balance)}, "is read-only"),
    "to: a function with two parameters": ({"to": (account, paid_twice)}, "give params=lambda record"),
    "no key function": ({"key": None}, "key= is missing"),
    "a key that is a path": ({"key": "$.account"}, "got '[$].account'"),
    "params that are a tuple": ({"params": (1, 2)}, "params= is a function"),
    "where that is a bool": ({"where": True}, "where= is a function"),
    "a value that nothing converts to": ({"value": Unfit}, "Unfit"),
    "a value that is no type": ({"value": 7}, "7"),
    "an unknown format": ({"format": "yaml"}, "format= is one of 'json', 'msgpack', 'bytes', 'text'"),
    "a format that is a class": ({"format": Avro}, "format= is one of"),
    "no format": ({"format": None}, "format= is one of"),
    "text of a Payment": ({"format": "text"}, "format='text' gives str"),
    "bytes of a Payment": ({"format": "bytes"}, "format='bytes' gives bytes"),
    "an unknown start": ({"start": "begin"}, "start= is 'earliest' or 'latest'"),
    "a start that is an offset": ({"start": 100}, "start= is"),
    "retry that is a number": ({"retry": 3}, "retry= is a styx.Retry"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_declaration_is_refused(wrong: str) -> None:
    given, says = WRONG[wrong]
    arguments: dict[str, Any] = {"topic": TOPIC, "value": Payment, "to": (account, paid), "key": lambda record: "a"}
    with pytest.raises(ConfigurationError, match=says) as told:
        Ingest("payments", **(arguments | given))
    assert "ingest 'payments'" in str(told.value)


def test_a_wrong_schema_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="recrod"):
        made_app(format=Avro({"type": "recrod"}))
    with pytest.raises(ConfigurationError, match="is no JSON"):
        Avro("{")
    with pytest.raises(ConfigurationError, match="is True or False"):
        Avro("{}", registry="yes")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="a class that protoc has made"):
        Protobuf(Payment)


def test_an_ingests_name_is_an_operators() -> None:
    with pytest.raises(ConfigurationError, match="an operator's name is"):
        Ingest("bank/payments", topic=TOPIC, to=(account, paid), key=lambda record: 1)


def test_the_app_has_the_operator_that_is_called() -> None:
    _, ingest = made_app()
    with pytest.raises(ConfigurationError, match="calls operator 'account', which the app does not have"):
        App("bank", [ingest])
    with pytest.raises(ConfigurationError, match="calls operator 'account'"):
        App("bank", [ingest, Operator("account")])


def test_two_ingests_have_two_names() -> None:
    app, ingest = made_app()
    with pytest.raises(ConfigurationError, match="two operators named 'payments'"):
        App("bank", [*app.operators.values(), ingest])


def test_a_record_becomes_a_call() -> None:
    seen: list[Any] = []

    def params(record: Any) -> Any:
        seen.append(record)
        return [record.value]

    _, ingest = made_app(params=params)
    made = ingest.made(TOPIC, 3, raw(9, pay("ada", 5), headers=[("a", b"1"), ("a", b"2")]))
    assert (made.wanted, made.key, made.params) == (True, "ada", (Payment("ada", 5),))
    (record,) = seen
    assert (record.topic, record.partition, record.offset) == (TOPIC, 3, 9)
    assert record.headers == {"a": b"2"}
    assert record.time == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)


def test_a_record_that_an_earlier_version_took_keeps_its_topic() -> None:
    _, ingest = made_app(key=lambda record: record.topic)
    assert ingest.made("bank.before", 3, raw(9, pay("ada", 5))).key == "bank.before"
    with pytest.raises(BadRecord, match=r"offset 9 of bank\.before, partition 3"):
        ingest.made("bank.before", 3, raw(9, b"{"))


def test_a_record_is_left_out() -> None:
    _, ingest = made_app(where=lambda record: record.value.amount > 5)
    assert not ingest.made(TOPIC, 0, raw(0, pay("ada", 5))).wanted
    assert ingest.made(TOPIC, 0, raw(0, pay("ada", 6))).wanted


BAD: dict[str, tuple[dict[str, Any], bytes | None, str]] = {
    "no JSON": ({}, b"{", "offset 4 of bank.payments, partition 2 cannot be decoded: DecodeError"),
    "another shape": ({}, b"[1]", "cannot be decoded: ValidationError: Expected `object`"),
    "a field too few": ({}, b'{"account": "a"}', "missing required field `amount`"),
    "a wrong type": ({}, b'{"account": 1, "amount": 1}', "Expected `str`"),
    "nothing": ({}, b"", "cannot be decoded"),
    "a tombstone": ({}, None, "it has no value"),
    "no text": ({"format": "text", "value": None, "key": lambda record: "a"}, b"\xff", "cannot be decoded"),
    "a key that raises": (
        {"key": lambda record: record.headers["x"]},
        pay("a", 1),
        "key= of ingest 'payments': KeyError: x",
    ),
    "a key of another type": ({"key": lambda record: 7}, pay("a", 1), "key= of ingest 'payments': BadKey"),
    "no key": ({"key": lambda record: None}, pay("a", 1), "key= of ingest 'payments': BadKey"),
    "where that raises": ({"where": lambda record: 1 / 0}, pay("a", 1), "where= of ingest 'payments': ZeroDivision"),
    "params that raise": ({"params": lambda record: record.value.x}, pay("a", 1), "params= of ingest 'payments': Attr"),
    "params that are none": ({"params": lambda record: None}, pay("a", 1), "params= of ingest 'payments': TypeError"),
}


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_record_is_told_with_its_place_and_the_reason(bad: str) -> None:
    given, value, says = BAD[bad]
    _, ingest = made_app(**given)
    with pytest.raises(BadRecord, match=says):
        ingest.made(TOPIC, 2, raw(4, value))


def test_a_record_without_room_is_told() -> None:
    _, ingest = made_app()
    with pytest.raises(BadRecord, match="has 5000000 bytes, which no request has room for"):
        ingest.made(TOPIC, 2, raw(4, b"begin", too_large=5_000_000))


# Events ----------------------------------------------------------------------------------------------------

received: Event[Payment] = Event("payment-received", Payment)


def test_records_become_events() -> None:
    ingest = Ingest("payments", topic=TOPIC, event=received, key=lambda record: record.value.account)
    made = ingest.made(TOPIC, 0, raw(0, pay("ada", 5)))
    assert (made.key, made.params) == ("ada", (Payment("ada", 5),))
    assert Ingest("payments", topic=TOPIC, event=received).made(TOPIC, 0, raw(0, pay("ada", 5))).key is None
    other = Ingest("payments", topic=TOPIC, event=received, value=int, params=lambda record: ("ada",))
    with pytest.raises(BadRecord, match="params= of ingest 'payments'"):
        other.made(TOPIC, 0, raw(0, b"5"))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "either to=.operator, function., or event="),
        ({"event": received, "to": (account, paid)}, "either to=.operator, function., or event="),
        ({"event": "payment-received"}, r"event= is a styx\.Event, got 'payment-received'"),
        ({"event": Event}, r"event= is a styx\.Event"),
        ({"event": received, "key": "account"}, "key= is a function"),
        ({"event": received, "format": "text"}, "format='text' gives str"),
    ],
)
def test_a_wrong_event_is_refused(given: dict[str, Any], says: str) -> None:
    arguments = {"key": lambda record: "a"} if not given else {}
    with pytest.raises(ConfigurationError, match=says):
        Ingest("payments", topic=TOPIC, **(arguments | given))


def test_the_app_has_the_event_that_is_emitted() -> None:
    ingest = Ingest("payments", topic=TOPIC, event=received)
    with pytest.raises(ConfigurationError, match="which the app does not have: declare it"):
        App("bank", [ingest], events=[Event("payment-received", Payment)])
    assert App("bank", [ingest], events=[received]).events
