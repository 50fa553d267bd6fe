"""The blocking client: the same names, from any thread, and nothing left running."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import styx
from styx import ConfigurationError, RequestRejected, TransactionAborted
from styx.testing.patience import PATIENCE_SECONDS
from tests.gateway.fake_engine import FakeEngine

pytestmark = pytest.mark.anyio


async def test_everything(url: str, engine: FakeEngine) -> None:
    def use() -> None:
        with styx.connect_sync(url) as client:
            assert client.call("shelf", "a", "add", 2, 3) == 5
            assert client.request("shelf", "a", "add", 2, timeout=PATIENCE_SECONDS, idempotency_key="k").result == 3
            assert client.submit("shelf", "a", "add", 2, idempotency_key="k").result().tid == 2
            with pytest.raises(TransactionAborted):
                client.call("shelf", "a", "fail", "x")
            with pytest.raises(RequestRejected):
                client.call("shelf", "a", "nothing")
            with pytest.raises(ValueError, match="timeout"):
                client.submit("shelf", "a", "key", timeout=0)
            with ThreadPoolExecutor(8) as pool:
                results = pool.map(lambda n: client.call("shelf", "a", "add", n), range(100))
                assert list(results) == list(range(1, 101))
        with pytest.raises(ConfigurationError, match="with"):
            client.call("shelf", "a", "key")
        client.close()

    threads = threading.active_count()
    await asyncio.to_thread(use)
    assert threading.active_count() <= threads + 1  # to_thread's own


async def test_timeout(url: str, engine: FakeEngine) -> None:
    engine.hold()

    def use() -> None:
        with styx.connect_sync(url) as client, pytest.raises(TimeoutError):
            client.call("shelf", "a", "key", timeout=0.001)

    await asyncio.to_thread(use)
