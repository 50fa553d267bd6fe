"""The way of one request: the files and functions that it passes, from the gateway to its answer, in order.

`scripts/way` prints it for a deposit and a transfer of the bank in `examples/bank.py`, embedded in memory and in a
cluster. Compiled code cannot be followed: it runs in the plain form. In a cluster all processes are objects on one
event loop, so that one profiler sees them; Kafka is a real one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any, Final

import styx
from examples.bank import app
from proof.cluster.services import LocalServices
from styx.cluster.coordinator.process import CoordinatorProcess
from styx.cluster.gateway.process import GatewayProcess
from styx.cluster.options import CoordinatorOptions, ProcessOptions
from styx.cluster.worker.process import WorkerProcess
from styx.gateway.app import Gateway
from styx.http.direct_request import DirectRequest, Headers
from styx.kafka.address import parse_kafka_url
from styx.model.limits import Limits
from styx.native.form import FORM, PLAIN_VARIABLE
from styx.store.memory import MemoryStore
from styx.transport import Security

REQUESTS: Final = {"deposit": ("alice/credit", b"[5]"), "transfer": ("alice/transfer", b'["bob",5]')}
"""The requests by name: the path of each below `/v1/account/`, and its arguments."""
WORKERS: Final = 2
SLOTS: Final = 4
ATTEMPTS: Final = 5
"""Requests sent in a cluster. Pings and other work also happen there, so the request with the fewest functions counts.
"""
_FIRST: Final = {"alice/open": b"[100]", "bob/open": b"[100]"}
_ROOT: Final = Path(styx.__file__).parent.parent
_STARTS_WITH: Final = str(_ROOT / "styx")
_READY_POLL_SECONDS: Final = 0.05


class Way:
    """The way of one request. `passed` are the entered functions as (file, function); a coroutine counts at
    each step.
    """

    def __init__(self, passed: Iterable[tuple[str, str]] = ()) -> None:
        self.passed = list(passed)

    @property
    def files(self) -> dict[str, list[str]]:
        """The functions on the way by file; files and functions are in the order of their first entry."""
        found: dict[str, dict[str, None]] = {}
        for file, function in self.passed:
            found.setdefault(file, {})[function] = None
        return {file: list(functions) for file, functions in found.items()}

    @property
    def functions(self) -> int:
        """How many functions there are on the way."""
        return len(set(self.passed))

    def changes(self, of: Callable[[str], str]) -> int:
        """How often the way changes from one `of(file)` to another."""
        places = [of(file) for file, _ in self.passed]
        return sum(one != other for one, other in pairwise(places))

    def counts(self) -> str:
        """The way in numbers."""
        return (
            f"{len(self.files)} files, {self.functions} functions, {len(self.passed)} calls, "
            f"{self.changes(str)} changes of file, {self.changes(lambda file: str(Path(file).parent))} of folder"
        )

    @contextmanager
    def followed(self) -> Iterator[None]:
        """While the context is open, the functions of the engine that this thread runs are added to the way."""
        note = self.passed.append

        def entered(frame: FrameType, event: str, _: Any) -> None:
            code = frame.f_code
            if event == "call" and code.co_filename.startswith(_STARTS_WITH):
                note((str(Path(code.co_filename).relative_to(_ROOT)), code.co_qualname))

        sys.setprofile(entered)
        try:
            yield
        finally:
            sys.setprofile(None)


class _Posted(DirectRequest):
    """A request without a connection."""

    __slots__ = ("status",)

    def __init__(self, to: str, body: bytes) -> None:
        nowhere: Any = None
        headers = [(b"content-length", b"%d" % len(body))]
        super().__init__(nowhere, b"POST", b"/v1/account/%b" % to.encode(), headers, keep_alive=True)
        self.body = body
        self.status: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def answer(self, status: int, headers: Headers, body: bytes) -> None:
        self.status.set_result(status)


async def post(gateway: Gateway, to: str, body: bytes, way: Way | None = None) -> None:
    """Gives one POST to the gateway, as a connection does, and follows it along `way`. Its transaction must commit."""
    request = _Posted(to, body)
    with nullcontext() if way is None else way.followed():
        assert gateway.direct.takes(request)
        gateway.direct.serve(request)
        assert await request.status == 200


@asynccontextmanager
async def embedded() -> AsyncIterator[Gateway]:
    """A gateway in front of an embedded engine in memory."""
    async with styx.embedded(app, n_slots=SLOTS) as client:
        yield Gateway(client.engine)


@asynccontextmanager
async def cluster(kafka: str) -> AsyncIterator[Gateway]:
    """A gateway of a cluster behind the broker at this address, all of whose processes run on this event loop."""
    store = MemoryStore()
    security = Security(b"the way of a request", app.name)

    def options(name: str, coordinator: str = "") -> ProcessOptions:
        log = parse_kafka_url(f"kafka://{kafka}")
        return ProcessOptions(name=name, security=security, coordinator=coordinator, log=log, open_store=lambda: store)

    wanted = CoordinatorOptions(app=app.name, n_slots=SLOTS, workers=WORKERS, limits=Limits())
    coordinator = CoordinatorProcess(options("coordinator"), wanted, app)
    running = [asyncio.ensure_future(coordinator.run())]
    address = await coordinator.listening()
    for number in range(WORKERS):
        running.append(asyncio.ensure_future(WorkerProcess(options(f"worker-{number}", address)).run()))
    process = GatewayProcess("gateway", security, address, parse_kafka_url(f"kafka://{kafka}"))
    running.append(asyncio.ensure_future(process.run()))
    try:
        while not process.ready:
            for task in running:
                if task.done():
                    task.result()
            await asyncio.sleep(_READY_POLL_SECONDS)
        yield Gateway(process)
    finally:
        for task in running:
            task.cancel()
        await asyncio.wait(running)
        await process.close()


async def ways(gateway: Gateway, attempts: int, pause: Callable[[], Awaitable[object]]) -> dict[str, Way]:
    """The way of each of `REQUESTS`, after requests that fill all caches. `pause` waits for the work that a request
    leaves.
    """
    for to, body in [*_FIRST.items(), *REQUESTS.values(), *REQUESTS.values()]:
        await post(gateway, to, body)
    found = {}
    for name, (to, body) in REQUESTS.items():
        tried = [Way() for _ in range(attempts)]
        for way in tried:
            await pause()
            await post(gateway, to, body, way)
        found[name] = min(tried, key=lambda way: (len(way.files), len(way.passed)))
    return found


async def ways_embedded() -> dict[str, Way]:
    """The ways in an embedded engine. They are the same in each run."""
    async with embedded() as gateway:
        return await ways(gateway, 1, lambda: asyncio.sleep(0.01))


async def ways_in_cluster(kafka: str) -> dict[str, Way]:
    """The ways in a cluster behind the broker at HOST:PORT, with as little other work as possible."""
    async with cluster(kafka) as gateway:
        return await ways(gateway, ATTEMPTS, lambda: asyncio.sleep(0.1))


def _in_cluster() -> dict[str, Way]:
    with tempfile.TemporaryDirectory(prefix="styx-way-") as directory:
        services = LocalServices(Path(directory))
        try:
            services.kafka.start()
            return asyncio.run(ways_in_cluster(services.kafka_address))
        finally:
            services.kafka.stop()


def _show(title: str, way: Way) -> None:
    print(f"{title}: {way.counts()}")
    for number, (file, functions) in enumerate(way.files.items(), 1):
        print(f"{number:4}  {file}")
        for function in functions:
            print(f"          {function}")
    print()


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="scripts/way", description="The files and functions that one request passes.")
    parser.add_argument(
        "where", nargs="?", choices=["embedded", "cluster"], help="only there; a cluster needs scripts/services"
    )
    parser.add_argument("--json", action="store_true", help="the calls in order, as [file, function]; embedded only")
    options = parser.parse_args()
    if FORM.extensions:
        raise SystemExit(f"compiled code cannot be followed: set {PLAIN_VARIABLE}=1, as scripts/way does")
    if options.json:
        print(json.dumps({name: way.passed for name, way in asyncio.run(ways_embedded()).items()}))
        return
    if options.where != "cluster":
        for name, way in asyncio.run(ways_embedded()).items():
            _show(f"a {name}, embedded", way)
    if options.where != "embedded":
        for name, way in _in_cluster().items():
            _show(f"a {name}, in a cluster", way)


if __name__ == "__main__":
    main()
