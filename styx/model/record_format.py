"""Formats of records that others write: from the bytes of a record's value to the value that an app's functions get.

A format is declared with an `Ingest`, and is pickled with it. It knows no topic and does no I/O; what it cannot decode
is the record's fault, and is told with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from styx.errors import ConfigurationError
from styx.values.codec import shown
from styx.values.custom_types import dec_hook

Decode = Callable[[bytes], Any]
"""Makes a value of bytes; raises any exception."""
_REGISTRY_MAGIC: Final = 0
_REGISTRY_BYTES: Final = 5


class RecordFormat:
    """How bytes become values; the base of all formats."""

    def decoder(self, value: Any) -> Decode:
        """Decodes values of the type `value`, or plain data for None. Raises `ConfigurationError`."""
        raise NotImplementedError


class _Text(RecordFormat):
    """The bytes themselves, or their text."""

    def __init__(self, name: str) -> None:
        self.name = name

    def decoder(self, value: Any) -> Decode:
        own = bytes if self.name == "bytes" else str
        if value not in (None, own):
            raise ConfigurationError(f"format={self.name!r} gives {own.__name__}: value= is left out, or says that")
        return bytes if own is bytes else bytes.decode


class _Known(RecordFormat):
    """What msgspec decodes by itself."""

    def __init__(self, make: Any) -> None:
        self._make = make

    def decoder(self, value: Any) -> Decode:
        made: Decode = (self._make() if value is None else self._make(value, dec_hook=dec_hook)).decode
        return made


class Avro(RecordFormat):
    """Records in Avro's binary encoding, each written with `schema`: a dict as of the schema's JSON, or its JSON text.

    `registry`: each record begins with a schema registry's five bytes, a zero and the number of the schema, which are
    passed over; the number is not looked up. Needs `pip install fastavro`. Raises `ConfigurationError`.
    """

    def __init__(self, schema: dict[str, Any] | str, *, registry: bool = False) -> None:
        if isinstance(schema, str):
            try:
                schema = msgspec.json.decode(schema)
            except msgspec.DecodeError as error:
                raise ConfigurationError(f"Avro(schema) is no JSON: {error}") from None
        self._schema = schema
        self._registry = _checked_registry("Avro", registry)

    def decoder(self, value: Any) -> Decode:
        """As `RecordFormat.decoder`."""
        try:
            import fastavro
        except ImportError:
            raise ConfigurationError("Avro records need fastavro: pip install fastavro") from None
        try:
            schema = fastavro.parse_schema(self._schema)
        except Exception as error:  # noqa: BLE001 - whatever fastavro says of a schema
            raise ConfigurationError(f"Avro(schema): {type(error).__name__}: {error}") from None
        read: Any = fastavro.schemaless_reader  # whose types ask for a whole file
        registry = self._registry

        def decode(data: bytes) -> Any:
            body = _Body(_behind_registry(data) if registry else data)
            found = read(body, schema, None)
            if body.rest:
                raise ValueError(f"{body.rest} bytes follow the value: it was written with another schema")
            return found if value is None else msgspec.convert(found, value, dec_hook=dec_hook)

        return decode


class _Body:
    """Bytes that fastavro reads as a file."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def read(self, count: int) -> bytes:
        if count < 0:
            raise ValueError(f"a length below 0 stands in it: {count}")
        found = self._data[self._at : self._at + count]
        if len(found) < count:
            raise EOFError("the value is cut off")
        self._at += count
        return found

    @property
    def rest(self) -> int:
        """How many bytes are left."""
        return len(self._data) - self._at


class Protobuf(RecordFormat):
    """Records that are messages of `message`, a class that `protoc` has made.

    Their fields have the names of the `.proto` file. `registry` is as for `Avro`; the numbers of the message in its
    file, which follow there, are passed over, too. Needs `pip install protobuf`. Raises `ConfigurationError`.
    """

    def __init__(self, message: Any, *, registry: bool = False) -> None:
        descriptor = getattr(message, "DESCRIPTOR", None)
        if not isinstance(message, type) or descriptor is None:
            raise ConfigurationError(f"Protobuf(message) is a class that protoc has made: got {shown(message)}")
        # Not the class: its module cannot be packed with an app, while a description can.
        self._name = str(descriptor.full_name)
        self._files = tuple(_files_of(descriptor.file))
        self._registry = _checked_registry("Protobuf", registry)

    def decoder(self, value: Any) -> Decode:
        """As `RecordFormat.decoder`."""
        try:
            from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
        except ImportError:
            raise ConfigurationError("Protobuf records need protobuf: pip install protobuf") from None
        pool = descriptor_pool.DescriptorPool()
        for data in self._files:
            pool.Add(descriptor_pb2.FileDescriptorProto.FromString(data))
        message = message_factory.GetMessageClass(pool.FindMessageTypeByName(self._name))
        registry = self._registry

        def decode(data: bytes) -> Any:
            parsed = message.FromString(_behind_indexes(_behind_registry(data)) if registry else data)
            found = json_format.MessageToDict(
                parsed, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
            )
            # A number of 64 bits is a text there.
            return found if value is None else msgspec.convert(found, value, strict=False, dec_hook=dec_hook)

        return decode


_NAMED: Final[dict[str, RecordFormat]] = {
    "json": _Known(msgspec.json.Decoder),
    "msgpack": _Known(msgspec.msgpack.Decoder),
    "bytes": _Text("bytes"),
    "text": _Text("text"),
}


def format_of(given: Any) -> RecordFormat:
    """The format that `format=` names or is; raises `ConfigurationError`."""
    if isinstance(given, RecordFormat):
        return given
    found = _NAMED.get(given) if isinstance(given, str) else None
    if found is None:
        raise ConfigurationError(
            f"format= is one of {', '.join(map(repr, _NAMED))}, or an Avro(…) or Protobuf(…): got {shown(given)}"
        )
    return found


def _checked_registry(kind: str, registry: Any) -> bool:
    if type(registry) is not bool:
        raise ConfigurationError(f"{kind}(registry=…) is True or False, got {shown(registry)}")
    return registry


def _behind_registry(data: bytes) -> bytes:
    if len(data) < _REGISTRY_BYTES or data[0] != _REGISTRY_MAGIC:
        raise ValueError("it lacks the five bytes of a schema registry at its beginning")
    return data[_REGISTRY_BYTES:]


def _behind_indexes(data: bytes) -> bytes:
    """What follows the numbers of a message in its file; a single zero stands for the first message."""
    count, at = _number(data, 0)
    for _ in range(count):
        _, at = _number(data, at)
    return data[at:]


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A zigzag number of at most five bytes, and the place behind it."""
    found = 0
    for shift in range(0, 35, 7):
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        found |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (found >> 1) ^ -(found & 1), at
    raise ValueError("the numbers of the message in its file are cut off")


def _files_of(file: Any) -> list[bytes]:
    """The descriptions of a file and of all that it imports, those that others need first."""
    found: dict[str, bytes] = {}

    def add(one: Any) -> None:
        if one.name in found:
            return
        for needed in one.dependencies:
            add(needed)
        found[one.name] = one.serialized_pb

    add(file)
    return list(found.values())
