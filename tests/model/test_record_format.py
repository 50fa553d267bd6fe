"""Formats of foreign records: what is read, what is not, and that a format goes into an app's package."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import msgspec
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from styx.formats import Avro, Protobuf
from styx.model.record_format import format_of
from tests.model.ingest_app import Payment, pay

SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Payment",
    "fields": [{"name": "account", "type": "string"}, {"name": "amount", "type": "long"}],
}
REGISTRY = b"\x00\x00\x00\x00\x07"


def avro(value: dict[str, Any]) -> bytes:
    body = io.BytesIO()
    fastavro.schemaless_writer(body, fastavro.parse_schema(SCHEMA), value)
    return body.getvalue()


def message() -> Any:
    """A message class as protoc makes it, of a file that imports another."""
    kinds = descriptor_pb2.FieldDescriptorProto
    needed = descriptor_pb2.FileDescriptorProto(name="money.proto", package="bank", syntax="proto3")
    money = needed.message_type.add(name="Money")
    money.field.add(name="amount", number=1, type=kinds.TYPE_INT64, label=kinds.LABEL_OPTIONAL)
    file = descriptor_pb2.FileDescriptorProto(
        name="payment.proto", package="bank", syntax="proto3", dependency=["money.proto"]
    )
    payment = file.message_type.add(name="Payment")
    payment.field.add(name="account", number=1, type=kinds.TYPE_STRING, label=kinds.LABEL_OPTIONAL)
    payment.field.add(name="amount", number=2, type=kinds.TYPE_INT64, label=kinds.LABEL_OPTIONAL)
    payment.field.add(
        name="paid_by", number=3, type=kinds.TYPE_MESSAGE, type_name=".bank.Money", label=kinds.LABEL_OPTIONAL
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(needed)
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("bank.Payment"))


def test_named_formats() -> None:
    assert format_of("json").decoder(Payment)(pay("a", 1)) == Payment("a", 1)
    assert format_of("json").decoder(None)(b'{"a": [1]}') == {"a": [1]}
    assert format_of("msgpack").decoder(Payment)(msgspec.msgpack.encode(Payment("a", 1))) == Payment("a", 1)
    assert format_of("text").decoder(None)("ä".encode()) == "ä"
    assert format_of("bytes").decoder(bytes)(b"\xff") == b"\xff"


def test_avro() -> None:
    data = avro({"account": "a", "amount": 1 << 40})
    assert Avro(SCHEMA).decoder(None)(data) == {"account": "a", "amount": 1 << 40}
    assert Avro(msgspec.json.encode(SCHEMA).decode()).decoder(Payment)(data) == Payment("a", 1 << 40)
    assert Avro(SCHEMA, registry=True).decoder(Payment)(REGISTRY + data) == Payment("a", 1 << 40)


@pytest.mark.parametrize(
    ("registry", "data", "says"),
    [
        (False, avro({"account": "a", "amount": 1}) + b"\x00", "1 bytes follow the value"),
        (False, avro({"account": "a", "amount": 1})[:-1], "cut off"),
        (False, b"", "cut off"),
        (True, avro({"account": "a", "amount": 1}), "lacks the five bytes of a schema registry"),
        (True, b"\x00", "lacks the five bytes"),
    ],
)
def test_avro_that_does_not_fit(registry: bool, data: bytes, says: str) -> None:
    with pytest.raises(Exception, match=says):
        Avro(SCHEMA, registry=registry).decoder(None)(data)


def test_protobuf() -> None:
    made = message()
    data = made(account="a", amount=1 << 40, paid_by={"amount": 2}).SerializeToString()
    assert Protobuf(made).decoder(Payment)(data) == Payment("a", 1 << 40)
    assert Protobuf(made).decoder(None)(data)["paid_by"] == {"amount": "2"}
    assert Protobuf(made).decoder(Payment)(b"") == Payment("", 0), "a field without presence has its default"
    for indexes in (b"\x00", b"\x02\x00", b"\x04\x02\x04"):
        assert Protobuf(made, registry=True).decoder(Payment)(REGISTRY + indexes + data) == Payment("a", 1 << 40)


def test_protobuf_that_does_not_fit() -> None:
    made = message()
    with pytest.raises(Exception, match=r"parsing|wire|Error"):
        Protobuf(made).decoder(None)(b"\x0a\xff")
    with pytest.raises(ValueError, match="are cut off"):
        Protobuf(made, registry=True).decoder(None)(REGISTRY + b"\x02")
