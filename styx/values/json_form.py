"""The JSON of values of one declared type: what readers of other languages get of a value that is stored as msgpack."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import inspect

from styx.values.codec import holds_sets
from styx.values.custom_types import dec_hook, enc_hook, in_order
from styx.values.declared_types import nodes_of

_CERTAIN: Final = (
    inspect.NoneType,
    inspect.BoolType,
    inspect.IntType,
    inspect.StrType,
    inspect.BytesType,
    inspect.DateTimeType,
    inspect.DateType,
    inspect.UUIDType,
    inspect.DecimalType,
    inspect.EnumType,
    inspect.LiteralType,
    inspect.ListType,
    inspect.VarTupleType,
    inspect.TupleType,
    inspect.UnionType,
    inspect.StructType,
    inspect.DataclassType,
    inspect.NamedTupleType,
    inspect.TypedDictType,
)
"""Nodes of types whose values always come back from JSON."""
_encoder = msgspec.json.Encoder(enc_hook=enc_hook)


class JsonForm:
    """Of values of the type `declared`. `certain`: every value comes back from its JSON; of other types, such as a
    float, which can be no number, `encode` and `decode` together tell.
    """

    __slots__ = ("_with_sets", "certain", "decode")

    def __init__(self, declared: Any) -> None:
        self._with_sets = holds_sets(declared)
        self.certain = all(isinstance(node, _CERTAIN) for node in nodes_of(inspect.type_info(declared)))
        self.decode = msgspec.json.Decoder(declared, dec_hook=dec_hook).decode

    def encode(self, value: Any) -> bytes:
        """The same text in every process; raises what msgspec raises for what JSON does not have."""
        return _encoder.encode(in_order(value) if self._with_sets else value)
