"""Whole tables as files: JSON, one object a line; CSV; or Parquet.

Rows are written as they come: slot by slot of a snapshot, or in other pieces of whatever else has them. A file has its
name only when it is whole; until then it has another one beside it, and a failed export leaves no file.
"""

from __future__ import annotations

import contextlib
import os
import sys
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, Protocol

from styx.errors import ConfigurationError
from styx.process.fsync import make_directory
from styx.query.extra import require
from styx.query.fields import JSON, Field, json_of
from styx.query.schema import Dataset
from styx.query.slots import Slots
from styx.query.source import Source

FORMATS: Final = {"json": ".jsonl", "csv": ".csv", "parquet": ".parquet"}
"""The endings of files by their format."""
STDOUT: Final = "-"
_PART: Final = ".part"

Record = tuple[Any, ...]
Pieces = Iterable[Sequence[Iterable[Record]]]
"""Each has the next records of every dataset that is exported, in their order."""


class Exported(NamedTuple):
    """A dataset that was exported: its name, the number of its rows, and the file, None for standard output."""

    name: str
    rows: int
    file: Path | None


class Writer(Protocol):
    """Writes the records of one dataset to a file."""

    def write(self, records: Iterable[Record]) -> None:
        """Writes these, behind those before."""
        ...

    def close(self) -> None:
        """Writes what ends the file, which stays open."""
        ...


class JsonWriter:
    """An object a line."""

    def __init__(self, file: IO[bytes], fields: Sequence[Field]) -> None:
        self._file = file
        self._names = [each.name for each in fields]

    def write(self, records: Iterable[Record]) -> None:
        """As `Writer.write`."""
        names, write = self._names, self._file.write
        for record in records:
            write(json_of(dict(zip(names, record, strict=True))) + b"\n")

    def close(self) -> None:
        """As `Writer.close`."""


class CsvWriter:
    """Lines of values behind a line of names, in UTF-8. None is nothing, and an empty text is `""`."""

    def __init__(self, file: IO[bytes], fields: Sequence[Field]) -> None:
        self._file = file
        self._kinds = [each.kind for each in fields]
        self._file.write(",".join(csv_text(each.name) for each in fields).encode() + b"\r\n")

    def write(self, records: Iterable[Record]) -> None:
        """As `Writer.write`."""
        kinds, write = self._kinds, self._file.write
        for record in records:
            line = ",".join([csv_value(kind, value) for kind, value in zip(kinds, record, strict=True)])
            write(line.encode() + b"\r\n")

    def close(self) -> None:
        """As `Writer.close`."""


class ParquetWriter:
    """Row groups of `styx.query.arrow.BATCH_ROWS` rows. Raises `ConfigurationError` if the extra is not installed."""

    def __init__(self, file: IO[bytes], fields: Sequence[Field]) -> None:
        require("Parquet", "pyarrow")
        from styx.query import arrow

        self._fields = fields
        self._batches = arrow.batches
        self._writer = arrow.parquet_writer(file, fields)

    def write(self, records: Iterable[Record]) -> None:
        """As `Writer.write`."""
        for batch in self._batches(self._fields, records):
            self._writer.write_batch(batch)

    def close(self) -> None:
        """As `Writer.close`."""
        self._writer.close()


_WRITERS: Final[dict[str, Callable[[IO[bytes], Sequence[Field]], Writer]]] = {
    "json": JsonWriter,
    "csv": CsvWriter,
    "parquet": ParquetWriter,
}


def csv_value(kind: str, value: Any) -> str:
    """A value of a column of this kind, as CSV has it."""
    if value is None:
        return ""
    if kind == JSON:
        return csv_text(json_of(value).decode())
    if type(value) is str:
        return csv_text(value)
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is bytes:
        return b64encode(value).decode()
    if type(value) is datetime:
        return value.isoformat().replace("+00:00", "Z")
    return str(value)


def csv_text(text: str) -> str:
    """A text as CSV has it: in quotes if it is empty, or has what would end it."""
    if text and not any(mark in text for mark in ',"\r\n') and text == text.strip():
        return text
    return '"' + text.replace('"', '""') + '"'


def export(source: Source, datasets: Sequence[Dataset], format: str, out: str) -> list[Exported]:
    """As `export_pieces`, of a snapshot; raises as `Slots`, too."""
    return export_pieces(pieces_of(source, datasets), datasets, format, out)


def pieces_of(source: Source, datasets: Sequence[Dataset]) -> Pieces:
    """The records of a snapshot, in one pass over its slots."""
    wanted = {table for dataset in datasets for table in dataset.tables}
    for entries in Slots(source).all_entries(wanted):
        yield [dataset.records(entries) for dataset in datasets]


def export_pieces(pieces: Pieces, datasets: Sequence[Dataset], format: str, out: str) -> list[Exported]:
    """Writes the records of these datasets into the directory `out`, as `cart.csv` and `cart/items.csv`. If there is
    one dataset, `out` may be a file with the format's ending, or `-` for standard output. Files that exist are
    replaced.

    Raises `ConfigurationError`, `OSError`, `UnsupportedValue` for a value that cannot be shown, and as `pieces`.
    """
    if out == STDOUT:
        return [_to_stdout(pieces, datasets, format)]
    files = [_file_of(dataset, format, out, len(datasets) == 1) for dataset in datasets]
    parts = [file.with_name(file.name + _PART) for file in files]
    with ExitStack() as stack:
        opened: list[IO[bytes]] = []
        for file, part in zip(files, parts, strict=True):
            make_directory(file.parent.absolute())
            stack.callback(_remove, part)
            opened.append(stack.enter_context(part.open("wb")))
        counts = _write(pieces, datasets, format, opened)
        for handle, part, file in zip(opened, parts, files, strict=True):
            handle.close()
            os.replace(part, file)
    return [Exported(each.name, count, file) for each, count, file in zip(datasets, counts, files, strict=True)]


def _to_stdout(pieces: Pieces, datasets: Sequence[Dataset], format: str) -> Exported:
    if len(datasets) != 1:
        raise ConfigurationError("--out - takes one operator or table: name it, or give a directory")
    if format == "parquet" and sys.stdout.isatty():
        raise ConfigurationError("Parquet is nothing for a terminal: give a file with --out")
    [count] = _write(pieces, datasets, format, [sys.stdout.buffer])
    sys.stdout.buffer.flush()
    return Exported(datasets[0].name, count, None)


def _write(pieces: Pieces, datasets: Sequence[Dataset], format: str, files: Sequence[IO[bytes]]) -> list[int]:
    """Writes all pieces; returns the numbers of the datasets' rows."""
    make = _WRITERS[format]
    writers = [make(file, dataset.columns) for dataset, file in zip(datasets, files, strict=True)]
    counts = [0] * len(datasets)
    for piece in pieces:
        for at, (records, writer) in enumerate(zip(piece, writers, strict=True)):
            counted = _Counted(records)
            writer.write(counted)
            counts[at] += counted.count
    for writer in writers:
        writer.close()
    return counts


class _Counted:
    """Gives the records on, and counts them."""

    def __init__(self, records: Iterable[Record]) -> None:
        self.count = 0
        self._records = records

    def __iter__(self) -> Iterator[Record]:
        for record in self._records:
            self.count += 1
            yield record


def _file_of(dataset: Dataset, format: str, out: str, alone: bool) -> Path:
    path, ending = Path(out), FORMATS[format]
    if path.suffix in (ending, f".{format}") and not path.is_dir():
        if not alone:
            raise ConfigurationError(f"--out {out} is one file, and several tables are exported: give a directory")
        return path
    if path.exists() and not path.is_dir():
        raise ConfigurationError(f"--out {out} is a file: give a directory, or a file that ends in {ending}")
    operator, table = dataset.operator, dataset.own_name
    return path / operator / f"{table}{ending}" if table else path / f"{operator}{ending}"


def _remove(part: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        part.unlink()
