"""Dead calls over HTTP: a list of them, and those that are tried again or dropped.

    GET  /v1/~dead/OPERATOR?key=…&after=…&first=…     {"result": {"calls": [{"id": …}, …], "next": "…" or null}}
    POST /v1/~dead/OPERATOR/ID/replay                  {"result": true}, false if it is not there any more
    POST /v1/~dead/OPERATOR/ID/drop                    likewise

No operator's name begins with `~`. The guard has decided before whether a client may do it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl

import msgspec

from styx.errors import BadArguments
from styx.gateway import head
from styx.gateway.engine import Engine
from styx.gateway.head import DeadAddress
from styx.gateway.status import Answer, MethodNotAllowed, answer_of, failure, result_json
from styx.model.dead_list import DEAD_CALLS_DEFAULT, dead_page, parts_of
from styx.model.function_spec import DEAD_FUNCTION, DROP_DEAD_FUNCTION, REPLAY_DEAD_FUNCTION
from styx.model.request import encode_arguments
from styx.values.codec import decode_plain, encode_any, shown

_PARAMETERS: Final = ("key", "after", "first")
_FUNCTIONS: Final = {"replay": REPLAY_DEAD_FUNCTION, "drop": DROP_DEAD_FUNCTION}


class _Failed(Exception):
    """A transaction of a list ended in an error, which `answer` tells."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer)
        self.answer = answer


def check_method(asked: DeadAddress, method: str) -> None:
    """Raises `MethodNotAllowed` for a method that the path does not have."""
    methods = ("GET", "HEAD") if asked.act is None else ("POST",)
    if method not in methods:
        raise MethodNotAllowed(method, methods)


async def answer_dead(
    engine: Engine, asked: DeadAddress, query: bytes, headers: Mapping[bytes, bytes], request_id: str
) -> Answer:
    """Makes the answer; raises as a call does for what is refused before it is sent."""
    operator = engine.app.operator(asked.operator)
    if asked.act is not None:
        key, its_id = parts_of(asked.call_id)
        arguments, function = encode_arguments((its_id,)), _FUNCTIONS[asked.act]
        request = engine.maker.make(operator, operator.check_key(key), function, arguments, "", request_id)
        return answer_of(await engine.submit_request(request))

    async def ask(name: str, key: Any, arguments: tuple[Any, ...]) -> Any:
        record = await engine.submit_request(engine.maker.make(name, key, DEAD_FUNCTION, encode_arguments(arguments)))
        if record.error is not None:
            raise _Failed(failure(*record.error, record=record))
        return decode_plain(record.result)

    wanted = _parameters(query)
    first = wanted.get("first", str(DEAD_CALLS_DEFAULT))
    if not first.isascii() or not first.isdigit() or len(first) > 9:
        raise BadArguments(f"first= is a number of dead calls, got {shown(first)}")
    key = head.key_of(wanted["key"], operator, headers) if "key" in wanted else None
    try:
        page = await dead_page(ask, operator.name, key, wanted.get("after"), int(first))
    except _Failed as failed:
        return failed.answer
    data = encode_any({"result": msgspec.structs.asdict(page) | {"calls": [*map(_plain, page.calls)]}}, "the page")
    return Answer(200, result_json(data))


def _plain(call: Any) -> dict[str, Any]:
    """A call as JSON has it."""
    return msgspec.structs.asdict(call)


def _parameters(query: bytes) -> dict[str, str]:
    given = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    found = dict(given)
    if len(found) < len(given):
        raise BadArguments(f"a list of dead calls takes each parameter once: got {shown([name for name, _ in given])}")
    for name in found:
        if name not in _PARAMETERS:
            raise BadArguments(f"a list of dead calls has no parameter {shown(name)}; it has: {', '.join(_PARAMETERS)}")
    return found
