"""Formats of foreign records that need a description: `format=Avro(schema)`, `format=Protobuf(Message)` of an `Ingest`.

Public names only.
"""

from styx.model.record_format import Avro, Protobuf, RecordFormat

__all__ = ["Avro", "Protobuf", "RecordFormat"]
