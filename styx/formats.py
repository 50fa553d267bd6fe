"""Formats of foreign records that need a description: `Ingest(format=Avro(schema))`, `Ingest(format=Protobuf(Message))`.

Public names only.
"""

from styx.model.record_format import Avro, Protobuf, RecordFormat

__all__ = ["Avro", "Protobuf", "RecordFormat"]
