"""A client that speaks ASGI by hand: paths, headers and body parts arrive exactly as a test gives them."""

import json
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, NamedTuple

Application = Callable[[MutableMapping[str, Any], Any, Any], Awaitable[None]]


class Answer(NamedTuple):
    """What came back; `parts_read` is how many body parts the application asked for."""

    status: int
    headers: dict[str, str]
    body: bytes
    parts_read: int

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> Any:
        return self.json["error"]["code"]


async def exchange(
    application: Application,
    method: str,
    path: str,
    parts: Iterable[bytes | None] = (b"",),
    headers: dict[str, str] | None = None,
    client: str | None = None,
) -> Answer:
    """One request, from the address `client`; `path` as on the wire. None among the body's parts is a client that hangs
    up there.
    """
    waiting = list(parts)
    sent: list[MutableMapping[str, Any]] = []
    reads = 0

    async def receive() -> MutableMapping[str, Any]:
        nonlocal reads
        reads += 1
        part = waiting.pop(0) if waiting else None
        if part is None:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": part, "more_body": bool(waiting)}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path.partition("?")[0],
        "raw_path": path.partition("?")[0].encode(),
        "root_path": "",
        "query_string": path.partition("?")[2].encode(),
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in (headers or {}).items()],
    }
    if client is not None:
        scope["client"] = (client, 50_000)
    await application(scope, receive, send)
    if not sent:
        return Answer(0, {}, b"", reads)
    body = b"".join(message["body"] for message in sent[1:])
    lines = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    assert method == "HEAD" or int(lines.get("content-length", "0")) == len(body)
    assert method != "HEAD" or not body
    return Answer(sent[0]["status"], lines, body, reads)


async def post(application: Application, path: str, body: bytes = b"", **headers: str) -> Answer:
    """One transaction's request; underscores in header names stand for hyphens."""
    return await exchange(
        application, "POST", path, [body], {name.replace("_", "-"): value for name, value in headers.items()}
    )
