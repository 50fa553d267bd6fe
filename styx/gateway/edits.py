"""Edits of state over HTTP: the value with its mark, and another value in its place, or none.

    GET  /v1/~edit/OPERATOR/KEY     {"result": {"mark": "…", "value": …}, "transaction": …}; "" for what is not there
    POST /v1/~edit/OPERATOR/KEY     {"mark": "…", "value": …} or {"mark": "…", "delete": true}
                                    {"result": {"mark": "…"}, "transaction": …}, or 409 `EditConflict`

With `?rows=TABLE&pk=[…]` it is the row with that primary key, a JSON array. No operator's name begins with `~`. The
guard has decided before whether a client may do it. A value whose JSON would lose something is not given: JSON has no
bytes and no times, so only a type can tell them from texts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl

import msgspec

from styx.errors import BadArguments, RequestRejected, describe
from styx.gateway import head
from styx.gateway.body import IncomingBody
from styx.gateway.engine import Engine
from styx.gateway.head import EditAddress
from styx.gateway.status import Answer, MethodNotAllowed, ResultNotJson, answer_of, failure, result_json
from styx.messages import ReplyRecord
from styx.model.entity_edit import ABSENT, mark_of
from styx.model.function_spec import EDIT_FUNCTION, LOOK_FUNCTION
from styx.model.operator import Operator
from styx.model.request import encode_arguments
from styx.model.table_names import row_table
from styx.relational.table import Table
from styx.schema.state_reading import dropped_part
from styx.values.codec import decode_plain, encode_any, shown
from styx.values.custom_types import dec_hook

_METHODS: Final = ("GET", "HEAD", "POST")
_decode_pk = msgspec.json.Decoder(list[str | int | bool]).decode


class _Edit(msgspec.Struct, forbid_unknown_fields=True):
    """The body of an edit."""

    mark: str
    value: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    delete: bool = False


class _Edited:
    """The operator's values, or the rows of one of its tables, with their JSON."""

    def __init__(self, operator: Operator, table: Table | None) -> None:
        declared = operator.state_type if table is None else table.row_type.declared
        self._decode = msgspec.json.Decoder(Any if declared is None else declared, dec_hook=dec_hook).decode
        self._encode: Callable[[Any], bytes] = operator.encode_state if table is None else table.row_type.encode

    def encoded(self, value: bytes) -> bytes:
        """The msgpack of a value's JSON; raises `BadArguments` if it does not fit its type."""
        try:
            typed = self._decode(value)
            data, dropped = self._encode(typed), dropped_part(msgspec.json.decode(value), typed)
        except Exception as error:  # noqa: BLE001 - converting runs a Struct's __post_init__, which is the app's
            kind, message = describe(error)
            why = message if isinstance(error, msgspec.ValidationError) else f"{kind}: {message}"
            raise BadArguments(f"the value does not fit its type: {why}") from None
        if dropped:
            raise BadArguments(f"the value does not fit its type: it has {dropped}, which the type does not have")
        return data


def check_method(method: str) -> None:
    """Raises `MethodNotAllowed` for a method that the path does not have."""
    if method not in _METHODS:
        raise MethodNotAllowed(method, _METHODS)


async def answer_edit(
    engine: Engine,
    asked: EditAddress,
    method: str,
    query: bytes,
    headers: Mapping[bytes, bytes],
    body: IncomingBody,
    request_id: str,
) -> Answer:
    """Makes the answer; raises as a call does for what is refused before it is sent."""
    operator = engine.app.operator(asked.operator)
    key = head.key_of(asked.key, operator, headers)
    rows, pk = _row(query)
    table = engine.app.declared_table(row_table(operator.name, rows)) if rows else None
    edited = _Edited(operator, table)
    if method != "POST":
        request = engine.maker.make(operator, key, LOOK_FUNCTION, encode_arguments((rows, pk)), "", request_id)
        return _looked(await engine.submit_request(request), edited)
    sent = await body.read(engine.limits.request_bytes_max, headers.get(b"content-length"))
    try:
        edit = msgspec.json.decode(sent, type=_Edit)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestRejected("bad_request", f'an edit is {{"mark": "…", "value": …}}: {error}') from None
    if (edit.value is msgspec.UNSET) != edit.delete:
        raise BadArguments('an edit has a "value", or "delete": true')
    value = None if isinstance(edit.value, msgspec.UnsetType) else edited.encoded(bytes(edit.value))
    arguments = encode_arguments((rows, pk, edit.mark, value))
    record = await engine.submit_request(engine.maker.make(operator, key, EDIT_FUNCTION, arguments, "", request_id))
    if record.error is not None:
        return answer_of(record)
    return answer_of(_with_result(record, {"mark": decode_plain(record.result)}))


def _looked(record: ReplyRecord, edited: _Edited) -> Answer:
    if record.error is not None:
        return answer_of(record)
    mark, value, fits = decode_plain(record.result)
    if mark == ABSENT:
        return answer_of(_with_result(record, {"mark": mark}))
    if fits and not _keeps(edited, mark, value):
        text = "its JSON would not be the same value: it has bytes, times, NaN or keys that are no texts, and no type"
        return failure("aborted", "UnsupportedValue", f"it cannot be edited as JSON: {text}; write a function", record)
    return answer_of(_with_result(record, {"mark": mark, "value": value}))


def _keeps(edited: _Edited, mark: str, value: Any) -> bool:
    """Whether the value that comes back from its JSON is the same."""
    try:
        return mark_of(edited.encoded(result_json(encode_any(value, "the value")))) == mark
    except (BadArguments, ResultNotJson):
        return False


def _with_result(record: ReplyRecord, result: dict[str, Any]) -> ReplyRecord:
    return msgspec.structs.replace(record, result=encode_any(result, "the answer"))


def _row(query: bytes) -> tuple[str, list[str | int | bool]]:
    """(the table, "" for the entity's value; the row's primary key)."""
    given = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    found = dict(given)
    if len(found) < len(given) or found.keys() - {"rows", "pk"} or ("rows" in found) != ("pk" in found):
        raise BadArguments(f"an edit of a row has rows=TABLE and pk=[…], each once: got {shown(dict(given))}")
    if not found:
        return "", []
    try:
        return found["rows"], _decode_pk(found["pk"])
    except (msgspec.DecodeError, RecursionError):
        raise BadArguments(f"pk= is a JSON array, such as [1], got {shown(found['pk'])}") from None
