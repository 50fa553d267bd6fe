"""What people hear while a coordinator cannot be reached: nothing at first, then each reason once; refusals at once."""

import asyncio
import logging

import msgspec
import pytest

from styx.cluster import reaching
from styx.cluster.reaching import reach_coordinator
from styx.cluster.wire import COORDINATOR, WORKER
from styx.transport import Hello, Security, listen
from styx.transport.frame import prefix_of

SECURITY = Security(b"0123456789abcdef", "c")
HELLO = Hello(cluster="c", role=WORKER, name="w", incarnation="1")
LOG = logging.getLogger("test.reaching")


async def wait_in_vain(address: str, seconds: float) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(seconds):
            await reach_coordinator(address, SECURITY, HELLO, 0.001, LOG)


def test_nobody_there(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    asyncio.run(wait_in_vain("127.0.0.1:1", 0.05))
    assert caplog.messages == []
    monkeypatch.setattr(reaching, "PATIENCE_SECONDS", 0.0)
    asyncio.run(wait_in_vain("127.0.0.1:1", 0.05))
    (told,) = caplog.messages
    assert told.startswith("waiting for the coordinator: 127.0.0.1:1 cannot be reached")


def test_another_secret(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        hello = Hello(cluster="c", role=COORDINATOR, name="c", incarnation="1")
        listener = await listen("127.0.0.1", 0, Security(b"f" * 16, "c"), hello, lambda _: None)
        await wait_in_vain(listener.address, 0.1)
        await listener.close()

    asyncio.run(main())
    assert sum("it has another secret" in message for message in caplog.messages if "waiting" in message) == 1


def test_a_release_with_another_version_is_said_once_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    """Until a coordinator that it can speak to has taken the place of this one, or it is replaced itself."""
    attempts: list[None] = []
    often = asyncio.Event()

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        attempts.append(None)
        if len(attempts) == 3:
            often.set()
        await reader.read(1)
        answer = msgspec.msgpack.encode(["refused", "version"])
        writer.write(prefix_of(len(answer)) + answer)
        await writer.drain()
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(refuse, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        waiting = asyncio.create_task(reach_coordinator(f"{host}:{port}", SECURITY, HELLO, 0.001, LOG))
        await often.wait()
        assert not waiting.done()
        waiting.cancel()
        server.close()

    asyncio.run(main())
    (told,) = caplog.messages
    assert "it is of a release with another version of the protocol than" in told
