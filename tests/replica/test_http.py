"""`/v1/sql` over real connections: forms of results, errors, limits, hostile queries, and clients that leave."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pyarrow as pa
import pytest

from styx.gateway.auth import api_keys
from styx.gateway.auth.access import AccessOptions
from styx.gateway.front import Front
from styx.query.schema import of_description
from styx.query.service import Limits
from styx.query.source import Place
from styx.replica.follower import Follower
from styx.replica.process import ReplicaProcess
from styx.replica.service import Places
from tests.backup.snapshots import Cluster
from tests.query.conftest import Filled
from tests.query.shop import app
from tests.replica.moments import LARGE, follower_of
from tests.replica.served import MOST, replica_of, so
from tests.replica.test_follower import described

SQL = {"content-type": "application/sql"}
ENDLESS = "with recursive r as (select 1 as n union all select n + 1 from r) select max(n) from r"
UNREAD = "the store has not been read yet"
TWO = Places(2, 4)
Session = aiohttp.ClientSession
Test = Callable[[Session, str, ReplicaProcess], Awaitable[None]]


def run(follower: Follower, test: Test, places: Places = TWO, most: Limits = MOST) -> None:
    async def within() -> None:
        async with replica_of(follower, places, most) as (url, process), aiohttp.ClientSession() as session:
            await so(lambda: follower.moment is not None or process.status()["trouble"] != UNREAD)
            await test(session, url, process)

    asyncio.run(within())


async def error_of(response: aiohttp.ClientResponse) -> tuple[int, str, str]:
    told = (await response.json())["error"]
    return response.status, told["code"], told["message"]


def test_forms_of_results(filled: Filled) -> None:
    query = "select key, value from counter.state order by key"

    async def test(session: Session, url: str, process: ReplicaProcess) -> None:
        async def post(**how: Any) -> bytes:
            async with session.post(f"{url}/v1/sql", **how) as response:
                assert response.status == 200, await response.text()
                assert response.headers["styx-epoch"] == str(process.now().state.epoch)
                assert float(response.headers["styx-age"]) >= 0
                assert response.headers["cache-control"] == "no-store"
                return await response.read()

        lines = await post(data=query, headers=SQL)
        assert [msgspec.json.decode(line) for line in lines.splitlines()][1] == {"key": 7, "value": 2}
        whole = msgspec.json.decode(await post(json={"sql": query, "format": "json"}))
        assert whole["epoch"] == process.now().state.epoch
        assert whole["columns"] == [{"name": "key", "type": "BIGINT"}, {"name": "value", "type": "JSON"}]
        assert whole["rows"] == [msgspec.json.decode(line) for line in lines.splitlines()]
        csv = await post(data=query, headers={**SQL, "accept": "text/csv, */*"})
        assert csv.splitlines()[:2] == [b"key,value", b"-5,1"]
        arrow = await post(data=query, headers={**SQL, "accept": "application/vnd.apache.arrow.stream"})
        assert pa.ipc.open_stream(arrow).read_all()["key"].to_pylist() == [-5, 7, 10, 2**40]
        assert await post(data=query, headers=SQL, params={"format": "csv"}) == csv
        given = {"sql": "select $1 + 1 n, $2 t, $3 b, $4 x", "parameters": [4, "a'b", True, None]}
        assert msgspec.json.decode(await post(json=given)) == {"n": 5, "t": "a'b", "b": True, "x": None}
        empty = await post(data="select 1 x where false", headers=SQL, params={"format": "json"})
        assert msgspec.json.decode(empty)["rows"] == []

    run(follower_of(filled.directory, app), test)


def test_the_tables(filled: Filled) -> None:
    async def test(session: Session, url: str, process: ReplicaProcess) -> None:
        async with session.get(f"{url}/v1/sql") as response:
            tables = (await response.json())["tables"]
        [found] = [each for each in tables if (each["schema"], each["name"]) == ("order", "lines")]
        assert found["columns"][0] == {"name": "entity_key", "kind": "int"}
        async with session.put(f"{url}/v1/sql", json={}) as response:
            assert response.status == 405
        async with session.get(f"{url}/v1/account/ada") as response:
            assert (await error_of(response))[:2] == (404, "not_found")

    run(follower_of(filled.directory), test)


@pytest.mark.parametrize(
    ("request_", "status", "code", "words"),
    [
        ({"data": "selec 1", "headers": SQL}, 400, "bad_request", "Parser Error: syntax error"),
        ({"data": "select * from cart.itms", "headers": SQL}, 400, "bad_request", "The tables are: account."),
        ({"json": {"sql": "select * from range(20)", "rows": 9}}, 422, "query_limit", "more than 9 rows"),
        ({"json": {"sql": ENDLESS, "seconds": 0.3}}, 422, "query_limit", "not ended within 0.3 s"),
        ({"data": "select repeat('x', 1000000000)", "headers": SQL}, 422, "query_limit", "more than 200 MiB"),
        ({"json": {"sql": "select 1", "rows": 100001}}, 400, "bad_request", "here at most 100000, got 100001"),
        ({"json": {"sql": "select 1", "seconds": 0}}, 400, "bad_request", "seconds is a number above 0"),
        ({"json": {"sql": "select 1", "format": "xml"}}, 400, "bad_request", "format is one of jsonl, json, csv"),
        ({"json": {"query": "select 1"}}, 400, "bad_request", "the body is not {sql, parameters"),
        ({"json": {"sql": "select $1", "parameters": [2**70]}}, 400, "bad_request", ""),
        ({"json": {"sql": "select 1"}, "params": {"rows": "1"}}, 400, "bad_request", "has its options in it"),
        ({"data": "select 1", "headers": SQL, "params": {"row": "1"}}, 400, "bad_request", "got 'row'"),
        ({"data": "select 1", "headers": SQL, "params": {"rows": "x"}}, 400, "bad_request", "are numbers"),
        ({"data": b"\xff", "headers": SQL}, 400, "bad_request", "no text in UTF-8"),
        ({"data": "", "headers": SQL}, 400, "bad_request", "one SELECT is expected"),
        ({"data": io.BytesIO(b"x" * (2**20 + 1)), "headers": SQL}, 413, "too_large", "over the limit of 1048576"),
        ({"data": "select 1", "headers": {"content-type": "text/plain"}}, 415, "unsupported_media_type", "text/plain"),
        ({"data": "select * from read_csv('/etc/passwd')", "headers": SQL}, 400, "bad_request", "are disabled"),
        ({"data": "attach 'x.db'", "headers": SQL}, 400, "bad_request", "this is ATTACH"),
        ({"data": "set memory_limit = '9GB'", "headers": SQL}, 400, "bad_request", "this is SET"),
        ({"data": "copy (select 1) to '/tmp/x'", "headers": SQL}, 400, "bad_request", "this is COPY"),
        ({"data": "install httpfs", "headers": SQL}, 400, "bad_request", "this is LOAD"),
        ({"data": "select " + "(" * 5000 + "1" + ")" * 5000, "headers": SQL}, 400, "bad_request", "depth"),
    ],
)
def test_refused(filled: Filled, request_: dict[str, Any], status: int, code: str, words: str) -> None:
    async def test(session: Session, url: str, process: ReplicaProcess) -> None:
        async with session.post(f"{url}/v1/sql", **request_) as response:
            told = await error_of(response)
        assert told[:2] == (status, code)
        assert words in told[2]
        async with session.post(f"{url}/v1/sql", data="select 1 x", headers=SQL) as response:
            assert await response.read() == b'{"x":1}\n'

    run(follower_of(filled.directory), test)


def memory() -> int:
    """Of this process, without what it shares."""
    _, resident, shared, *_ = map(int, Path("/proc/self/statm").read_text().split())
    return (resident - shared) * 4096


def test_a_gigabyte_passes_through_little_memory(filled: Filled) -> None:
    async def test(session: Session, url: str, process: ReplicaProcess) -> None:
        sql = "select repeat('x', 10000) x from range(100000)"
        size, most = 0, 0
        async with session.post(f"{url}/v1/sql", json={"sql": sql, "seconds": 300, "format": "arrow"}) as response:
            before = memory()
            async for part in response.content.iter_chunked(2**20):
                size += len(part)
                most = max(most, memory())
        assert size > 10**9
        assert most - before < 150 * 2**20

    run(follower_of(filled.directory), test, most=Limits(200, 300.0, 100_000))


def test_a_result_that_breaks_off_is_seen_to(filled: Filled) -> None:
    late = (
        "select repeat('x', 1000) x, case range when 95000 then error('late at ' || range) else 'y' end y "
        "from range(1000000)"
    )

    async def test(session: Session, url: str, process: ReplicaProcess) -> None:
        broke_off = 0
        for form in ("jsonl", "csv"):
            body = b""
            async with session.post(f"{url}/v1/sql", json={"sql": late, "format": form}) as response:
                assert response.status == 200
                try:
                    async for part in response.content.iter_any():
                        body += part
                except aiohttp.ClientPayloadError:
                    broke_off += 1
            assert len(body) > 10**6
            if form == "jsonl":
                assert "late at 95000" in msgspec.json.decode(body.splitlines()[-1])["error"]["message"]
        assert broke_off == 2

    run(follower_of(filled.directory), test)


def test_a_client_that_leaves_ends_its_query(filled: Filled) -> None:
    async def test(session: Session, url: str, process: ReplicaProcess) -> None:
        counts = process.service.counts
        asking = asyncio.ensure_future(session.post(f"{url}/v1/sql", data=ENDLESS, headers=SQL))
        await so(lambda: counts.running == 1)
        asking.cancel()
        await so(lambda: counts.running == 0)
        assert counts.left == 1
        sql = "select repeat('x', 10000) x from range(100000)"
        async with session.post(f"{url}/v1/sql", data=sql, headers=SQL) as response:
            await response.content.readany()
            assert counts.running == 1
        await so(lambda: counts.running == 0)  # it left in the middle of the result
        async with session.post(f"{url}/v1/sql", data="select 1 x", headers=SQL) as response:
            assert response.status == 200

    run(follower_of(filled.directory), test, Places(1, 0), Limits(200, 600.0, 100_000))


def test_a_full_line(filled: Filled) -> None:
    async def test(session: Session, url: str, process: ReplicaProcess) -> None:
        counts = process.service.counts
        first = asyncio.ensure_future(session.post(f"{url}/v1/sql", data=ENDLESS, headers=SQL))
        await so(lambda: counts.running == 1)
        second = asyncio.ensure_future(session.post(f"{url}/v1/sql", data="select 2 x", headers=SQL))
        await so(lambda: counts.waiting == 1)
        async with session.post(f"{url}/v1/sql", data="select 3 x", headers=SQL) as response:
            assert response.headers["retry-after"] == "1"
            assert (await error_of(response))[:2] == (429, "overloaded")
        first.cancel()
        async with await second as response:
            assert await response.read() == b'{"x":2}\n'

    run(follower_of(filled.directory), test, Places(1, 1), Limits(200, 600.0, 10))


def test_without_a_snapshot(tmp_path: Path) -> None:
    cluster = Cluster()
    follower = Follower(lambda: Place(cluster.store, described), of_description, 2**30)

    async def test(session: Session, url: str, process: ReplicaProcess) -> None:
        for ask in (session.get(f"{url}/v1/sql"), session.post(f"{url}/v1/sql", data="select 1", headers=SQL)):
            async with ask as response:
                status, code, words = await error_of(response)
                assert (status, code) == (503, "unavailable")
                assert "the store has no snapshot yet" in words
                assert response.headers["retry-after"] == "1"
        async with session.get(f"{url}/readyz") as response:
            assert response.status == 503
        async with session.get(f"{url}/healthz") as response:
            assert response.status == 200
        cluster.snapshot(5, {"a": b"1"})
        await so(lambda: follower.moment is not None)
        async with session.get(f"{url}/readyz") as response:
            assert response.status == 200
        async with session.post(f"{url}/v1/sql", data="select 1 x", headers=SQL) as response:
            assert response.headers["styx-epoch"] == "5"

    run(follower, test)


def test_pages(filled: Filled) -> None:
    async def test(session: Session, url: str, process: ReplicaProcess) -> None:
        async with session.get(url) as response:
            text = await response.text()
            policy = response.headers["content-security-policy"]
        assert "<code>cart.items</code>" in text
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in text.replace("http-equiv", "")
        async with session.post(f"{url}/v1/sql", data="select 1", headers=SQL) as response:
            await response.read()
        await so(lambda: process.service.counts.running == 0)
        async with session.get(f"{url}/metrics") as response:
            metrics = await response.text()
        assert f"styx_replica_epoch {float(process.now().state.epoch)}" in metrics
        assert 'styx_sql_queries_total{outcome="answered"} 1.0' in metrics
        assert "styx_sql_request_seconds_count 1.0" in metrics
        async with session.get(f"{url}/status") as response:
            told = await response.json()
        assert (told["app"], told["trouble"]) == ("look", None)
        assert told["state_bytes"] > 10_000

    run(follower_of(filled.directory), test)


def test_who_may_ask(filled: Filled, tmp_path: Path) -> None:
    keys, policy = tmp_path / "keys.json", tmp_path / "rules.toml"
    given = {name: added(keys, name) for name in ("analyst", "watcher", "shop")}
    policy.write_text(
        '[[allow]]\nkeys = ["analyst"]\nsql = ["*"]\n[[allow]]\nkeys = ["watcher"]\nsql = ["watch"]\n'
        '[[allow]]\nkeys = ["shop"]\nload = ["*"]\nread = ["*"]\ncall = ["*"]\n'
    )
    front = Front(access=AccessOptions(api_keys=keys, policy=policy))

    async def within() -> None:
        follower = follower_of(filled.directory)
        async with replica_of(follower, front=front) as (url, _), aiohttp.ClientSession() as session:
            await so(lambda: follower.moment is not None)

            async def status(who: str | None, path: str = "", method: str = "POST") -> int:
                headers = {**SQL, **({} if who is None else {"authorization": f"Bearer {given[who]}"})}
                data = "select 1" if method == "POST" else None
                async with session.request(method, f"{url}/v1/sql{path}", data=data, headers=headers) as response:
                    return response.status

            assert [await status(who) for who in (None, "analyst", "watcher", "shop")] == [401, 200, 403, 403]
            assert [await status(who, "", "GET") for who in ("analyst", "watcher", "shop")] == [200, 403, 403]
            watch = "/watch?sql=select%201"
            assert [await status(who, watch, "GET") for who in ("analyst", "watcher", "shop")] == [200, 200, 403]

    asyncio.run(within())


def added(path: Path, name: str) -> str:
    key, entry = api_keys.new_key(name, api_keys.utc_now())
    api_keys.change_file(path, lambda keys: [*keys, entry])
    return key


# Tokens --------------------------------------------------------------------------------------------------------------


def test_a_token_that_is_reached_and_one_that_is_not(filled: Filled) -> None:
    async def test(session: Session, url: str, process: ReplicaProcess) -> None:
        epoch = process.now().state.epoch
        body = {"sql": "select 1 x", "seconds": 0.3, "format": "json"}
        async with session.post(f"{url}/v1/sql", json=body, headers={"styx-epoch": str(epoch)}) as response:
            assert (response.status, response.headers["styx-epoch"]) == (200, str(epoch))
        async with session.post(f"{url}/v1/sql", json=body, headers={"styx-epoch": str(epoch + 1)}) as response:
            status, code, words = await error_of(response)
        assert (status, code) == (504, "timeout")
        assert f"the end of epoch {epoch + 1}, the session's token, has not been reached within 0.3 s" in words
        assert f"it is at epoch {epoch}" in words
        for wrong in ("x", "-1", ""):
            async with session.post(f"{url}/v1/sql", json=body, headers={"styx-epoch": wrong}) as response:
                assert (await error_of(response))[:2] == (400, "bad_request")
        watched = {"sql": "select 1 x", "seconds": "0.3"}
        for header in ("styx-epoch", "last-event-id"):
            async with session.get(f"{url}/v1/sql/watch", params=watched, headers={header: str(epoch + 1)}) as response:
                assert (await error_of(response))[:2] == (504, "timeout")
            async with session.get(f"{url}/v1/sql/watch", params=watched, headers={header: str(epoch)}) as response:
                assert response.status == 200
                assert (await response.content.readline()) == b"id: %d\n" % epoch

    run(follower_of(filled.directory, app), test)


def test_a_query_waits_for_its_token() -> None:
    cluster = Cluster()
    cluster.snapshot(1, {"a": b"1"})
    follower = Follower(lambda: Place(cluster.store, described), of_description, LARGE)

    async def test(session: Session, url: str, process: ReplicaProcess) -> None:
        asking = asyncio.ensure_future(
            session.post(f"{url}/v1/sql", json={"sql": "select 1 x"}, headers={"styx-epoch": "2"})
        )
        await asyncio.sleep(0.2)
        assert not asking.done()
        cluster.snapshot(2, {"a": b"2"})
        async with await asking as response:
            assert (response.status, response.headers["styx-epoch"]) == (200, "2")

    run(follower, test)
