"""A `partition_key` that never ends: its request is refused before it is in the log, or with a verdict that stays."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import styx
from styx import App, Context, Limits, Operator
from styx.client.embedded import EmbeddedClient
from styx.log.base import Stream
from styx.messages import Request, decode_reply, encode_request
from styx.model.function_spec import READ_FUNCTION
from styx.sequencer.epoch_record import EPOCHS_PARTITION, Verdicts, decode

pytestmark = pytest.mark.anyio

asked: list[str] = []


def by_region(key: str) -> str:
    if key == "endless":
        asked.append(key)
        while True:
            pass
    return key[:1]


account = Operator("account", partition_key=by_region)


@account.register
async def add(ctx: Context) -> int:
    total: int = await ctx.get(0) + 1
    await ctx.put(total)
    return total


app = App("placed", [account])


def client(data_dir: Path) -> EmbeddedClient:
    return styx.embedded(app, data_dir, limits=Limits(function_seconds_max=0.2))


@pytest.mark.parametrize("function", ["add", READ_FUNCTION])
async def test_its_request_is_refused_before_it_is_in_the_log(tmp_path: Path, function: str) -> None:
    async with client(tmp_path) as embedded:
        assert await embedded.call(account, "a", add) == 1
        reply = await embedded.submit(account, "endless", function)
        assert reply.error is not None
        assert reply.error.code == "bad_arguments"
        assert re.search(r"test_endless_partition_key.py:\d+ in by_region", reply.error.message)
        assert await embedded.call(account, "a", add) == 2
        await embedded.engine.flushed()
        embedded.engine.crash()
    asked.clear()
    async with client(tmp_path) as embedded:
        assert await embedded.call(account, "a", add) == 3
    assert not asked


@pytest.mark.parametrize("function", ["add", READ_FUNCTION])
async def test_a_record_of_the_log_ends_with_a_verdict_and_no_replay_asks_again(tmp_path: Path, function: str) -> None:
    async with client(tmp_path) as embedded:
        assert await embedded.call(account, "a", add) == 1
        record = encode_request(Request("r", "account", "endless", function, b"\x90", "once"))
        embedded.engine.log.append(Stream.REQUESTS, 0, 1, record)
        embedded.engine.log.flush()
        await embedded.engine.flushed()
        embedded.engine.crash()
    asked.clear()
    for total in (2, 3, 4):
        async with client(tmp_path) as embedded:
            assert await embedded.call(account, "a", add, timeout=300) == total
            await embedded.engine.flushed()
            check_log(embedded)
            embedded.engine.crash()
    assert asked == ["endless"]


def check_log(embedded: EmbeddedClient) -> None:
    """There is one verdict, and one reply that says the same."""
    log = embedded.engine.log
    entries = [decode(record.payload) for record in log.read(Stream.EPOCHS, EPOCHS_PARTITION, 0)]
    replies = [decode_reply(reply.payload) for reply in log.read(Stream.REPLIES, 0, 0)]
    [[tid, outcome]] = [ended for entry in entries if isinstance(entry, Verdicts) for ended in entry.ended]
    assert outcome is not None
    assert outcome[:2] == ("bad_arguments", "FunctionTooLong")
    [reply] = [reply for reply in replies if reply.request_id == "r"]
    assert (reply.tid, reply.error) == (tid, outcome)
