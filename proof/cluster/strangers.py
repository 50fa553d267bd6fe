"""Connections and records of strangers, who do not belong to the cluster: at its ports, and in its requests topic.

    python -m proof.cluster.strangers

Each must be refused, be logged once by the process that it reached, and have no effect on others.
"""

from __future__ import annotations

import argparse
import asyncio
import pickle
import secrets
import sys
from collections.abc import Awaitable, Callable
from random import Random
from typing import Final, NamedTuple

from aiokafka import AIOKafkaProducer

from proof.cluster.audit import Audit, AuditFailed, audit
from proof.cluster.cluster import ClusterOptions, ClusterUnderTest
from proof.cluster.faults import APP, longest_silence
from proof.cluster.load import LoadOptions, SteadyLoad, chaos_requests
from proof.cluster.services import local_services, working_directory
from styx.cluster.wire import GATEWAY, WORKER
from styx.testing.history import SerializabilityViolation
from styx.testing.patience import PATIENCE_SECONDS
from styx.transport import Hello, Refused, Security, dial

TRIES: Final = 3
"""Attempts of each stranger at each port, of which the log must name one."""
ANSWER_SECONDS_MAX: Final = PATIENCE_SECONDS
"""Limit on the time until a connection is closed. The limit of a handshake is much lower."""
DIAL_SECONDS_MAX: Final = PATIENCE_SECONDS
GIB: Final = 1 << 30
TOLD: Final = "refused a connection"


class Pickled:
    """An object that reports if it is unpickled."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str, ...]]:
        return print, ("UNPICKLED",)


async def _wrong_secret(port: int, security: Security) -> None:
    await _refused(port, Security(secrets.token_bytes(32), security.cluster), security.cluster)


async def _wrong_cluster(port: int, security: Security) -> None:
    await _refused(port, Security(security.secret, "another"), "another")


async def _refused(port: int, security: Security, cluster: str) -> None:
    hello = Hello(cluster=cluster, role=WORKER, name="stranger", incarnation="1")
    try:
        connection = await dial(f"127.0.0.1:{port}", security, hello, DIAL_SECONDS_MAX)
    except Refused:
        return
    connection.abort("nobody was to let this in")
    raise AuditFailed(f"port {port} let a stranger in")


async def _long_prefix(port: int, _: Security) -> None:
    await _closed(port, GIB.to_bytes(4, "big") + b"x" * 64)


async def _unauthenticated(port: int, _: Security) -> None:
    await _closed(port, (5).to_bytes(4, "big") + b"hello")


async def _http(port: int, _: Security) -> None:
    await _closed(port, b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")


async def _half_open(port: int, _: Security) -> None:
    await _closed(port, b"\0\0")


async def _closed(port: int, data: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    try:
        async with asyncio.timeout(ANSWER_SECONDS_MAX):
            while await reader.read(4096):
                pass
    except ConnectionError:
        pass
    except TimeoutError:
        raise AuditFailed(f"port {port} keeps a connection after {data[:16]!r}") from None
    finally:
        writer.close()


AT_PORTS: Final[dict[str, Callable[[int, Security], Awaitable[None]]]] = {
    "wrong secret": _wrong_secret,
    "wrong cluster": _wrong_cluster,
    "1 GiB prefix": _long_prefix,
    "unauthenticated": _unauthenticated,
    "HTTP": _http,
    "half open": _half_open,
}
"""The strangers by name. Each raises `AuditFailed` if a process accepts it."""
REASONS: Final = 4
"""Limit on the lines in one log: for a wrong secret, a wrong cluster, bytes that are no handshake, and silence."""


class Refusals(NamedTuple):
    """The findings: the lines in the log of each process, the longest time without a reply, and the audit."""

    told: dict[str, int]
    silence_s: float
    audit: Audit


async def try_strangers(cluster: ClusterUnderTest, rng: Random, load_options: LoadOptions) -> Refusals:
    """Starts the cluster, and tries all strangers under load. Raises `SerializabilityViolation`."""
    loop = asyncio.get_running_loop()
    await cluster.start()
    async with cluster.client() as client:
        requests = chaos_requests(rng, cluster.options.slots)
        load = SteadyLoad(client, None, dict(cluster.app.operators), requests, load_options, rng)
        load.start()
        await load.next_reply(ANSWER_SECONDS_MAX)
        at_s = loop.time()
        ports = [cluster.coordinator_port, *cluster.worker_ports]
        await asyncio.gather(
            *(
                stranger(port, cluster.security)
                for _ in range(TRIES)
                for stranger in AT_PORTS.values()
                for port in ports
            )
        )
        await _append_garbage(cluster)
        await load.next_reply(ANSWER_SECONDS_MAX)
        silence_s = longest_silence(load.reply_times, at_s, loop.time())
        await load.stop()
    cluster.check()
    if load.contradictions:
        raise AuditFailed("\n".join(load.contradictions))
    texts = {child.name: child.log.read_text("utf-8", "replace") for child in cluster.children}
    for name, text in texts.items():
        if "UNPICKLED" in text:
            raise AuditFailed(f"{name} has unpickled a record of the requests topic")
    told = {name: text.count(TOLD) for name, text in texts.items() if GATEWAY not in name}
    for name, lines in told.items():
        if not 1 <= lines <= REASONS:
            raise AuditFailed(f"{name} tells of refused connections {lines} times.\n{texts[name]}")
    found = await audit(cluster, load.replies)
    if found.garbage != cluster.options.slots:
        raise AuditFailed(f"{cluster.options.slots} records were no requests, and {found.garbage} were found")
    return Refusals(told, silence_s, found)


async def _append_garbage(cluster: ClusterUnderTest) -> None:
    """A pickle into each partition of the requests."""
    producer = AIOKafkaProducer(bootstrap_servers=cluster.options.kafka)
    await producer.start()
    try:
        for slot in range(cluster.options.slots):
            await producer.send_and_wait(cluster.topics.requests, pickle.dumps(Pickled()), partition=slot)
    finally:
        await producer.stop()


def main(arguments: list[str] | None = None) -> int:
    """The command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m proof.cluster.strangers", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    directory = working_directory("strangers")
    with local_services() as services:
        cluster = ClusterUnderTest(
            ClusterOptions(
                app=APP,
                name="strangers",
                kafka=services.kafka_address,
                store="strangers",
                s3_endpoint=services.s3_endpoint,
                directory=directory,
            )
        )

        async def run() -> Refusals:
            async with cluster:
                return await try_strangers(cluster, Random(options.seed), LoadOptions(http=0.0))

        try:
            found = asyncio.run(run())
        except SerializabilityViolation as failure:
            print(f"FAILED: {failure}")
            return 1
    print(f"{TRIES} times each at every port: {', '.join(AT_PORTS)}; a pickle in every partition of the requests")
    print(f"all refused; told of in {', '.join(f'{name}: {lines} lines' for name, lines in found.told.items())}")
    print(
        f"meanwhile {found.audit.records} requests, each answered once; at most {found.silence_s:.2f} s without a reply"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
