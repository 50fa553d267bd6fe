"""Load over HTTP on a server of this machine, and the server's processor time for each call, by thread.

`python -m benchmarks.http_load PORT PID` opens accounts of `examples/bank.py` over keep-alive connections that each
wait for their answers, with `--pipelined N` requests at once on each. The server is another process, as
`python -m styx dev examples.bank:app --port PORT`. Linux only.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from pathlib import Path
from typing import Any, Final

from benchmarks.driver.one_at_a_time import run_load

ACCOUNTS: Final = 10_000
WARM_UP_SECONDS: Final = 1.5
_END: Final = b"\r\n\r\n"
_LENGTH: Final = b"content-length: "


class Load:
    """What all connections have in common. `answered` counts the answers, `others` those that are no 200."""

    def __init__(self, port: int, pipelined: int) -> None:
        self.port = port
        self.pipelined = pipelined
        self.answered = self.others = 0
        self.over = False
        self._random = random.Random(1)

    def requests(self) -> bytes:
        """The next requests of a connection."""
        return b"".join([self._request() for _ in range(self.pipelined)])

    def _request(self) -> bytes:
        number = self._random.randrange(ACCOUNTS)
        return (
            b"POST /v1/account/%d/open HTTP/1.1\r\nhost: 127.0.0.1:%d\r\ncontent-type: application/json\r\n"
            b"content-length: 3\r\n\r\n[5]" % (number, self.port)
        )


class _Client(asyncio.Protocol):
    def __init__(self, load: Load) -> None:
        self._load = load
        self._waiting = 0
        self._received = b""
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._send()

    def data_received(self, data: bytes) -> None:
        self._received += data
        while _END in self._received:
            head, _, rest = self._received.partition(_END)
            length = int(head.partition(_LENGTH)[2].partition(b"\r\n")[0])
            if len(rest) < length:
                return
            self._received = rest[length:]
            self._load.answered += 1
            self._load.others += not head.startswith(b"HTTP/1.1 200 ")
            self._waiting -= 1
        if not self._waiting and not self._load.over:
            self._send()

    def _send(self) -> None:
        self._waiting = self._load.pipelined
        self._transport.write(self._load.requests())


def seconds_by_thread(pid: int) -> dict[str, float]:
    """Processor seconds of each thread of a process since its start."""
    found = {}
    for thread in Path(f"/proc/{pid}/task").iterdir():
        found[thread.name] = int((thread / "schedstat").read_text().split()[0]) / 1e9
    return found


async def run(port: int, pid: int, n_connections: int, pipelined: int, seconds: float) -> None:
    """Prints the rate, and microseconds a call."""
    load, loop = Load(port, pipelined), asyncio.get_running_loop()
    for _ in range(n_connections):
        await loop.create_connection(lambda: _Client(load), "127.0.0.1", port)
    await asyncio.sleep(WARM_UP_SECONDS)
    first, before, began_s = load.answered, seconds_by_thread(pid), time.monotonic()
    await asyncio.sleep(seconds)
    after, count = seconds_by_thread(pid), load.answered - first
    elapsed_s, load.over = time.monotonic() - began_s, True
    spent = sorted(((used - before.get(name, 0.0)) * 1e6 / count, name) for name, used in after.items())[::-1]
    parts = ", ".join(f"{'main' if name == str(pid) else 'another'} {each:.1f}" for each, name in spent if each >= 0.5)
    total = sum(each for each, _ in spent)
    print(f"{count / elapsed_s:.0f}/s, {total:.1f} µs of processor a call ({parts}), {load.others} answers are no 200")


def main() -> None:
    """Runs the load of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("pid", type=int)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--pipelined", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3.0)
    options = parser.parse_args()
    served = run(options.port, options.pid, options.connections, options.pipelined, options.seconds)
    run_load(served)


if __name__ == "__main__":
    main()
