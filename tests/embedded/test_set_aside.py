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
from styx.set_aside import place_of
from styx.worker.executor import Executor
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
    place = found[1]

    async def refused(place: str, why: str) -> None:
        with pytest.raises(ConfigurationError, match=why):
            await asyncio.to_thread(set_aside, place, data_dir=tmp_path)

    await refused("9999:0", "there is no request 9999:0: slots are 0 to")
    await refused(f"{slot}:77", f"there is no request {slot}:77; of slot {slot} the log has 0 to 2")
    await refused(f"{slot}:0", f"the request {slot}:0, entity.add on 'a', has been answered: it has committed")
    await asyncio.to_thread(set_aside, place, data_dir=tmp_path, dry_run=True)
    assert f"request {place}, entity.poison on 'a', would be set aside" in capsys.readouterr().out
    await asyncio.to_thread(set_aside, data_dir=tmp_path)
    assert capsys.readouterr().out == "no request is set aside\n"
    await asyncio.to_thread(set_aside, place, data_dir=tmp_path)
    assert f"request {place}, entity.poison on 'a', is set aside" in capsys.readouterr().out
    await refused(place, "is set aside already")
    await asyncio.to_thread(set_aside, data_dir=tmp_path)
    assert capsys.readouterr().out == f"{place}\n"
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


async def test_what_a_snapshot_holds_the_end_of_has_been_answered(tmp_path: Path) -> None:
    async with styx.embedded(app, tmp_path) as client:
        assert await client.call(entity, "a", add) == 1
        slot = entity.slot_of("a", client.engine.n_slots)
    with pytest.raises(ConfigurationError, match=f"the request {slot}:0 has been answered: the snapshot of epoch"):
        await asyncio.to_thread(set_aside, f"{slot}:0", data_dir=tmp_path)
