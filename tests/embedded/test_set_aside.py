"""A request at which the engine fails at every start is named, can be set aside, and the rest goes on."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

import styx
from styx import App, Context, EngineFailed, Operator
from styx.cli.set_aside import set_aside
from styx.errors import ConfigurationError
from styx.log.base import Stream
from styx.messages import Request, decode_reply, encode_request
from styx.worker.executor import Executor
from styx.worker.set_aside import place_of
from tests.plain_form import plain_form

pytestmark = [pytest.mark.anyio, plain_form]

entity = Operator("entity")


@entity.register
async def add(ctx: Context) -> int:
    total: int = await ctx.get(0) + 1
    await ctx.put(total)
    return total


@entity.register
async def poison(ctx: Context) -> None:
    await ctx.put(99)


app = App("aside", [entity])


@pytest.fixture
def fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine itself fails at one function."""
    original = Executor._start

    def start(self: Executor, invocation: Any) -> None:
        if invocation._spec.name == "poison":
            raise RuntimeError("a fault of the engine's")
        original(self, invocation)

    monkeypatch.setattr(Executor, "_start", start)


async def test_what_the_engine_fails_at_is_named_and_can_be_set_aside(
    tmp_path: Path, fault: None, capsys: pytest.CaptureFixture[str]
) -> None:
    async with styx.embedded(app, tmp_path) as client:
        assert await client.call(entity, "a", add) == 1
        await client.engine.flushed()
        log, slot = client.engine.log, entity.slot_of("a", client.engine.n_slots)
        log.append(Stream.REQUESTS, slot, 1, encode_request(Request("bad", "entity", "a", "poison", b"\x90")))
        log.append(Stream.REQUESTS, slot, 1, encode_request(Request("good", "entity", "a", "add", b"\x90")))
        log.flush()
        await client.engine.flushed()
        client.engine.crash()
    with pytest.raises(EngineFailed):
        await styx.embedded(app, tmp_path).__aenter__()
    with pytest.raises(EngineFailed, match=r"a fault of the engine's .*entity\.poison on 'a'") as failed:
        await styx.embedded(app, tmp_path).__aenter__()
    found = re.search(r"`styx set-aside (\d+:\d+)`", str(failed.value))
    assert found is not None
    await asyncio.to_thread(set_aside, found[1], data_dir=tmp_path)
    assert f"request {found[1]} is set aside" in capsys.readouterr().out
    for expected in (3, 4):
        async with styx.embedded(app, tmp_path, keep_log=True) as client:
            assert await client.call(entity, "a", add) == expected
            await client.engine.flushed()
            replies = [decode_reply(record.payload) for record in client.engine.log.read(Stream.REPLIES, slot, 0)]
            bad = [reply.error for reply in replies if reply.request_id == "bad"]
            assert [error[:2] for error in bad if error is not None] == [("bad_request", "RequestSetAside")]
            client.engine.crash()


@pytest.mark.parametrize("text", ["", "3", "3:", ":4", "a:b", "-1:3", "3:4:5", "3:9999999999999999999"])
def test_a_place_is_a_slot_and_an_offset(text: str) -> None:
    with pytest.raises(ConfigurationError, match="SLOT:OFFSET"):
        place_of(text)
    assert place_of("3:1041") == (3, 1041)
