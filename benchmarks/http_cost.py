"""The processor time of a call over HTTP, without sockets: on the direct way, behind ASGI, and in the engine alone.

`python -m benchmarks.http_cost` gives connections their bytes in the process of an embedded engine in memory, and
counts the processor time of the event loop's thread until each has its answer; then the steps of the direct way, each
by itself. All of them take turns. `--profile N` shows the N functions of the direct way that take the most time
instead.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import pstats
import time
from collections.abc import Callable
from statistics import median
from typing import Any, Final

import uvicorn
from uvicorn.server import ServerState

import styx
from benchmarks.driver.one_at_a_time import load_test
from examples.bank import app
from styx.embedded_engine.engine import EmbeddedEngine
from styx.gateway import head, status
from styx.gateway.app import Gateway
from styx.gateway.calls import Calls
from styx.gateway.front import Entrance, Front
from styx.http.connection import HttpConnection
from styx.http.direct_request import DirectRequest
from styx.http.room import HttpLimits, Room
from styx.messages import ReplyRecord
from styx.model.request import encode_arguments
from styx.native.form import FORM, describe
from styx.process.memory import tune_collector

CONNECTIONS: Final = 64
ROUNDS: Final = 200
"""Calls of each connection in a turn."""
TURNS: Final = 7
FRONT: Final = Front()


class _Answers(asyncio.Transport):
    """A transport that counts what is written, for all connections together. As a receiver, it counts replies."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def write(self, data: Any) -> None:
        assert data.startswith(b"HTTP/1.1 200 OK"), data
        self.count += 1

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        """A connection without a turn for long ends."""

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def done(self) -> bool:
        return False

    def set_result(self, record: ReplyRecord) -> None:
        assert record.error is None, record
        self.count += 1

    def set_exception(self, error: BaseException) -> None:
        raise error


def connections(
    engine: EmbeddedEngine, answers: _Answers, *, direct: bool, count: int = CONNECTIONS
) -> list[HttpConnection]:
    """Connections to a gateway of its own."""
    entrance = Entrance(Gateway(engine), FRONT, FRONT.rules("127.0.0.1", "127.0.0.1"))
    config = uvicorn.Config(entrance.application, http=HttpConnection, lifespan="off", log_config=None, ws="none")
    config.load()
    room, state, loop = Room(HttpLimits(CONNECTIONS, 75.0)), ServerState(), asyncio.get_running_loop()
    state.default_headers = [(b"date", b"Sun, 06 Nov 1994 08:49:37 GMT")]
    made = []
    for _ in range(count):
        way = entrance.direct if direct else None
        made.append(HttpConnection(config, state, {}, loop, room=room, direct=way))
        made[-1].connection_made(answers)
    return made


def posted(number: int) -> bytes:
    """A credit to an account, as a client sends it."""
    head = b"POST /v1/account/%d/credit HTTP/1.1\r\nhost: 127.0.0.1:8080\r\ncontent-type: application/json\r\n" % number
    return head + b"content-length: 3\r\n\r\n[5]"


class _Fixed:
    """A direct way that takes everything and answers it at once: what remains is the connection."""

    def takes(self, request: DirectRequest) -> bool:
        return True

    def serve(self, request: DirectRequest) -> None:
        request.answer(200, [status.JSON, (b"content-length", b"2")], b"{}")


def lines(engine: EmbeddedEngine) -> dict[str, Callable[[], object]]:
    """The steps of a call on the direct way, each by itself; what they call once for a call."""
    answers, calls = _Answers(), Calls(engine, 30.0)
    (connection,) = connections(engine, answers, direct=True, count=1)
    entrance = Entrance(Gateway(engine), FRONT, FRONT.rules("127.0.0.1", "127.0.0.1"))
    request = DirectRequest(connection, b"POST", b"/v1/account/17/credit", [], keep_alive=True)
    request.headers = [(b"host", b"127.0.0.1:8080"), (b"content-type", b"application/json"), (b"content-length", b"3")]
    way = entrance.direct
    assert way is not None
    assert way.takes(request)
    record = ReplyRecord("0123456789abcdef-1f", 1, 1, 7, 1, b"\x05")
    sent = posted(17)
    fixed = HttpConnection(connection.config, connection.server_state, {}, room=connection._room, direct=_Fixed())
    fixed.connection_made(answers)

    def decided() -> None:
        asked = head.parse("/v1/account/17/credit")
        assert asked is not None
        call = calls.call(asked, "POST", request.by_name, None)
        calls.admit()
        calls.placed(call, b"[5]", "0123456789abcdef-1f")

    return {
        "parser and connection, until the answer is written": lambda: fixed.data_received(sent),
        "door and path": lambda: way.takes(request),
        "options, route, arguments, record": decided,
        "answer": lambda: status.headers_of(status.answer_of(record), "0123456789abcdef-1f"),
    }


async def turn(answers: _Answers, send: Callable[[int], None]) -> float:
    """Processor time of one call, in microseconds."""
    began_s = time.thread_time()
    for number in range(ROUNDS):
        expected = answers.count + CONNECTIONS
        send(number)
        while answers.count < expected:  # noqa: ASYNC110 - each turn of the loop counts, and nothing else runs
            await asyncio.sleep(0)
    return (time.thread_time() - began_s) / (ROUNDS * CONNECTIONS) * 1e6


async def measured(profile: int) -> dict[str, list[float]]:
    """Microseconds a call, by form, in turns."""
    async with styx.embedded(app, snapshot_interval=1000.0) as client:
        engine, answers = client.engine, _Answers()
        for number in range(CONNECTIONS):
            await client.call("account", str(number), "open", 0)
        sent = [posted(number) for number in range(CONNECTIONS)]
        ways = {way: connections(engine, answers, direct=way == "direct") for way in ("direct", "ASGI")}
        operator, arguments = engine.app.operator("account"), encode_arguments((5,))

        def by_http(way: str) -> Callable[[int], None]:
            def send(_: int) -> None:
                for connection, data in zip(ways[way], sent, strict=True):
                    connection.data_received(data)

            return send

        def by_engine(_: int) -> None:
            for number in range(CONNECTIONS):
                engine.send_request(engine.maker.make(operator, str(number), "credit", arguments), 30.0, answers)

        forms = {"engine alone": by_engine, "direct": by_http("direct"), "ASGI": by_http("ASGI")}
        tune_collector()
        for send in forms.values():
            await turn(answers, send)
        if profile:
            with cProfile.Profile() as profiler:
                await turn(answers, forms["direct"])
            pstats.Stats(profiler).sort_stats("tottime").print_stats(profile)
            return {}
        steps = lines(engine)
        found: dict[str, list[float]] = {name: [] for name in (*forms, *steps)}
        for _ in range(TURNS):
            for name, send in forms.items():
                found[name].append(await turn(answers, send))
            for name, step in steps.items():
                found[name].append(alone(step))
        return found


def alone(step: Callable[[], object]) -> float:
    """Processor time of a step, in microseconds."""
    count = ROUNDS * CONNECTIONS
    began_s = time.thread_time()
    for _ in range(count):
        step()
    return (time.thread_time() - began_s) / count * 1e6


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--profile", type=int, default=0, metavar="N")
    options = parser.parse_args()
    with load_test():
        found = asyncio.run(measured(options.profile))
    print(f"{describe(FORM)}; µs of processor a call, median of {TURNS} turns and range")
    for name, values in found.items():
        print(f"{name:<52}{median(values):7.1f} ({min(values):.1f} to {max(values):.1f})")


if __name__ == "__main__":
    main()
