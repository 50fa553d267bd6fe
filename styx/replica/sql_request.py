"""A query as it comes over HTTP: its text, parameters, the form of its result, and what it may use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl

import msgspec

from styx.errors import RequestRejected
from styx.query.service import Asked, Limits
from styx.replica.encoders import ENCODERS
from styx.values.codec import shown

BODY_BYTES_MAX: Final = 1024 * 1024
DEFAULT_FORMAT: Final = "jsonl"
_OPTIONS: Final = ("format", "rows", "seconds")
_BY_TYPE: Final = {encoder.content_type.partition(";")[0]: name for name, encoder in ENCODERS.items()}


class SqlRequest(msgspec.Struct, frozen=True):
    """A query, the `format` of its result, and its limits."""

    asked: Asked
    format: str
    limits: Limits


class _Body(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    sql: str
    parameters: list[str | int | float | bool | None] = []
    format: str | None = None
    rows: int | None = None
    seconds: float | None = None


def of_body(headers: Mapping[bytes, bytes], query: bytes, body: bytes, most: Limits) -> SqlRequest:
    """A posted query: JSON, or else the query's text, with options in the URL. It may use at most `most`. Raises
    `RequestRejected` (`bad_request`).
    """
    options = options_of(query, _OPTIONS)
    if headers.get(b"content-type", b"").partition(b";")[0].strip().lower() == b"application/json":
        if options:
            raise _bad(f"a query in JSON has its options in it, and the URL has {', '.join(options)}, too")
        try:
            found = msgspec.json.decode(body, type=_Body)
        except msgspec.DecodeError as error:
            raise _bad(f"the body is not {{sql, parameters, format, rows, seconds}} in JSON: {error}") from None
        asked, form = Asked(found.sql, found.parameters), found.format
        limits = limited(most, found.rows, found.seconds)
    else:
        try:
            asked = Asked(body.decode())
        except UnicodeDecodeError:
            raise _bad("the query is no text in UTF-8") from None
        form, limits = options.get("format"), limits_of(options, most)
    if form is None:
        form = _accepted(headers.get(b"accept", b"*/*").decode("latin-1"))
    if form not in ENCODERS:
        raise _bad(f"format is one of {', '.join(ENCODERS)}, got {shown(form)}")
    return SqlRequest(asked, form, limits)


def options_of(query: bytes, known: tuple[str, ...]) -> dict[str, str]:
    """The options in a URL's query, each once. Raises as `of_body`."""
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    found = dict(pairs)
    for name, _ in pairs:
        if name not in known:
            raise _bad(f"the URL takes {', '.join(known)}, got {shown(name)}")
    if len(found) < len(pairs):
        raise _bad(f"the URL has an option twice: it takes {', '.join(known)}, each once")
    return found


def limits_of(options: Mapping[str, str], most: Limits) -> Limits:
    """The limits that options in a URL ask for. Raises as `of_body`."""
    try:
        rows = int(options["rows"]) if "rows" in options else None
        seconds = float(options["seconds"]) if "seconds" in options else None
    except ValueError:
        raise _bad("rows and seconds are numbers") from None
    return limited(most, rows, seconds)


def limited(most: Limits, rows: int | None, seconds: float | None) -> Limits:
    """What a query that asks for so much may use. Raises as `of_body` for more than `most`."""
    for name, wanted, limit in (("rows", rows, most.rows), ("seconds", seconds, most.seconds)):
        if wanted is not None and not 0 < wanted <= limit:
            raise _bad(f"{name} is a number above 0, and here at most {limit:g}, got {wanted:g}")
    return Limits(most.memory_mib, most.seconds if seconds is None else seconds, most.rows if rows is None else rows)


def _accepted(accept: str) -> str:
    """The first form in the header that there is; a browser and a program that take anything get lines of JSON."""
    for part in accept.split(","):
        found = _BY_TYPE.get(part.partition(";")[0].strip().lower())
        if found is not None:
            return found
    return DEFAULT_FORMAT


def _bad(message: str) -> RequestRejected:
    return RequestRejected("bad_request", message)
