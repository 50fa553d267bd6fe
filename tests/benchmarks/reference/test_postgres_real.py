"""The bank on a real PostgreSQL server: the same answers as the app's, and no money made or lost."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Coroutine, Iterator
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import asyncpg
import pytest
import uvloop

from benchmarks.driver.result import SearchResult, read
from benchmarks.reference.__main__ import main
from benchmarks.reference.postgres_accounting import BACKENDS, BACKGROUND, counted, processes
from benchmarks.reference.postgres_bank import TRANSFERS
from benchmarks.reference.postgres_client import ACCESS_DEFAULT, POOLS, WAITING_MAX_DEFAULT, Access, PostgresClient
from benchmarks.reference.postgres_deployment import fill
from benchmarks.reference.postgres_server import PostgresServer, find_binaries, postgres_server
from benchmarks.reference.postgres_tuning import saturated
from benchmarks.ycsbt.settings import Settings
from benchmarks.ycsbt.workload import YcsbT
from styx.errors import BadArguments, ConfigurationError
from styx.messages import Reply
from styx.testing.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.slow

KEYS = 100
START = 1000
WORKLOAD = YcsbT(Settings(keys=KEYS, balance=START))


def need_postgres() -> None:
    try:
        find_binaries()
    except ConfigurationError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    need_postgres()
    with postgres_server() as running:
        yield running


def on(server: PostgresServer, scenario: Coroutine[Any, Any, None]) -> None:
    """On a table that has just been filled."""

    async def filled() -> None:
        await fill(server, WORKLOAD)
        await scenario

    uvloop.run(filled())


def client_of(
    server: PostgresServer, size: int, access: Access = ACCESS_DEFAULT, waiting_max: int = WAITING_MAX_DEFAULT
) -> PostgresClient:
    return PostgresClient(server.connection(), size, waiting_max, access)


async def audited(server: PostgresServer, witness: Any = None) -> list[str]:
    async with PostgresClient(server.connection(), 2) as client:
        return (await WORKLOAD.audit(client, [] if witness is None else [witness])).violations


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("transfer", TRANSFERS)
def test_functions_answer_as_those_of_the_app(server: PostgresServer, pool: str, transfer: str) -> None:
    async def scenario() -> None:
        async with client_of(server, 1, Access(pool, transfer)) as client:
            moved = await client.request("account", 1, "transfer", 2, 300)
            assert moved == Reply(700, None, 0, 0, 0, "")
            assert await client.call("account", 2, "read") == 1300
            assert await client.call("account", 3, "read_many", [2, 1]) == [1000, 1300, 700]

            poor = await client.request("account", 1, "transfer", 2, 701)
            assert poor.error is not None
            assert (poor.error.type, poor.error.code) == ("InsufficientFunds", "aborted")
            for request in (
                (1, "transfer", KEYS, 5),
                (KEYS, "transfer", 1, 5),
                (KEYS, "read"),
                (1, "read_many", [KEYS]),
            ):
                missing = await client.request("account", *request)
                assert missing.error is not None, request
                assert (missing.error.type, missing.error.code) == ("NoSuchAccount", "aborted")
            unknown = await client.request("account", 1, "rob")
            assert unknown.error is not None
            assert unknown.error.code == "unknown_function"

            assert await client.call("account", 1, "read_many", [2]) == [700, 1300]
            with pytest.raises(BadArguments):
                await client.load("account", [(1, 1)])

    on(server, scenario())


@pytest.mark.parametrize("pool", POOLS)
def test_opposite_transfers_are_serialized_and_repeated(server: PostgresServer, pool: str) -> None:
    async def scenario() -> None:
        async with client_of(server, 16, Access(pool)) as client:
            replies = await asyncio.gather(
                *(client.request("account", each % 2, "transfer", 1 - each % 2, 1) for each in range(400))
            )
        assert all(reply.error is None for reply in replies)
        ended = await counted(server)
        assert ended.rolled_back > 0, "none of them was in another one's way"
        assert ended.deadlocks == 0
        async with client_of(server, 1, Access(pool)) as client:
            assert await client.call("account", 0, "read_many", [1]) == [START, START]
        assert await audited(server) == []

    on(server, scenario())


def test_one_row_after_the_other_is_serialized_too_and_no_money_is_made(server: PostgresServer) -> None:
    """The function's transfers can also deadlock, so that none is opposite to another here."""

    async def scenario() -> None:
        access = Access(transfer="function")
        async with client_of(server, 8, access) as client:
            replies = await asyncio.gather(
                *(
                    client.request("account", each % KEYS, "transfer", KEYS - 1, 1)
                    for each in range(400)
                    if each % KEYS != KEYS - 1
                )
            )
        assert all(reply.error is None for reply in replies)
        assert (await counted(server)).rolled_back > 0, "none of them was in another one's way"
        assert await audited(server) == []

    on(server, scenario())


def test_a_lock_that_lasts_too_long_is_given_up_in_time_and_the_pool_goes_on(server: PostgresServer) -> None:
    async def scenario() -> None:
        blocker = await asyncpg.connect(**server.connection())
        try:
            async with client_of(server, 1, Access("asyncpg")) as client:
                async with blocker.transaction():
                    await blocker.execute("UPDATE account SET balance = balance WHERE key = 1")
                    with pytest.raises(TimeoutError, match="no answer in time"):
                        await asyncio.wait_for(
                            client.submit("account", 1, "transfer", 2, 5, timeout=0.2), PATIENCE_SECONDS
                        )
                assert await client.call("account", 2, "read") == START
        finally:
            await blocker.close()

    on(server, scenario())


def test_a_transfer_finds_its_rows_by_their_index(server: PostgresServer) -> None:
    """A small table is the hard case: read as a whole, every transfer would be in every other one's way."""

    async def scenario() -> None:
        async with PostgresClient(server.connection(), 8) as client:
            pairs = [(2 * each, 2 * each + 1) for each in range(KEYS // 2)]
            await asyncio.gather(
                *(client.call("account", one, "transfer", other, 1) for one, other in pairs for _ in range(10))
            )
        connection = await asyncpg.connect(**server.connection())
        scans = await connection.fetchrow(
            "SELECT seq_scan, idx_scan FROM pg_stat_user_tables WHERE relname = 'account'"
        )
        await connection.close()
        assert scans["seq_scan"] <= 1, "more than the one that made the index"
        assert scans["idx_scan"] >= 10 * KEYS // 2

    on(server, scenario())


def test_changed_behind_their_back_the_audit_finds_it(server: PostgresServer) -> None:
    async def scenario() -> None:
        generator = WORKLOAD.generator(0, 1, 1)
        async with PostgresClient(server.connection(), 4) as client:
            for _ in range(50):
                planned = generator.next()
                generator.answered(
                    planned, await client.request(planned.operator, planned.key, planned.function, *planned.arguments)
                )
        assert await audited(server, generator.witness()) == []
        connection = await asyncpg.connect(**server.connection())
        await connection.execute("UPDATE account SET balance = balance + 1 WHERE key = 7")
        await connection.close()
        violations = await audited(server, generator.witness())
        assert any(text.startswith("account 7 has") for text in violations)
        assert any("1 were made" in text for text in violations)

    on(server, scenario())


@pytest.mark.parametrize("pool", POOLS)
def test_more_than_may_wait_is_refused_and_what_waits_at_the_end_is_unknown(server: PostgresServer, pool: str) -> None:
    async def scenario() -> None:
        client = client_of(server, 1, Access(pool), waiting_max=2)
        async with client:
            submitted = [client.submit("account", 1, "read") for _ in range(4)]
            refused = await submitted[3]
            assert refused.error is not None
            assert refused.error.code == "overloaded"
        for waiting in submitted[:2]:
            with pytest.raises(ConnectionError):
                await asyncio.wait_for(waiting, PATIENCE_SECONDS)
        with pytest.raises(ConfigurationError):
            client.submit("account", 1, "read")

    on(server, scenario())


@pytest.mark.parametrize("pool", POOLS)
def test_what_has_no_connection_in_time_is_not_sent(server: PostgresServer, pool: str) -> None:
    async def scenario() -> None:
        async with client_of(server, 1, Access(pool)) as client:
            submitted = client.submit("account", 1, "transfer", 2, 5, timeout=0.001)
            time.sleep(0.01)  # noqa: ASYNC251 - this is to hold up the loop
            with pytest.raises(TimeoutError):
                await submitted
            assert await client.call("account", 2, "read") == START

    on(server, scenario())


@pytest.mark.parametrize("pool", POOLS)
def test_processes_are_known_by_what_they_do(server: PostgresServer, pool: str) -> None:
    async def scenario() -> None:
        async with client_of(server, 3, Access(pool)):
            roles = processes(server)()
        assert len(roles[BACKENDS]) == 3
        assert server.postmaster in roles[BACKGROUND]

    on(server, scenario())


@pytest.mark.parametrize("pool", POOLS)
def test_busy_connections_give_a_rate(server: PostgresServer, pool: str) -> None:
    async def scenario() -> None:
        assert await saturated(server, WORKLOAD, size=4, seconds=0.2, access=Access(pool)) > 0

    on(server, scenario())


@pytest.mark.parametrize("access", [Access(), Access("dedicated", "function")])
def test_the_command_measures_and_leaves_nothing(
    access: Access, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    need_postgres()
    made: list[Path] = []

    def noted(prefix: str) -> str:
        made.append(Path(mkdtemp(prefix=prefix)))
        return str(made[-1])

    monkeypatch.setattr(tempfile, "mkdtemp", noted)
    out = tmp_path / "result.json"
    words = "--rates 100,200 --no-search --duration 1 --warm-up 0.2 --connections 4 --clients 2 --keys 50 --zipf 0.9"
    chosen = [] if access == Access() else ["--pool", access.pool, "--statement", access.transfer]
    assert main(["postgres", *words.split(), *chosen, "--quiet", "--out", str(out)]) == 0

    result = read(out)
    assert isinstance(result, SearchResult)
    assert [step.rate for step in result.steps] == [100, 200]
    assert [step.result.sent for step in result.steps] == [100, 200]
    assert result.deployment["connections"] == 4
    assert (result.deployment["pool"], result.deployment["statement"]) == tuple(access)
    assert result.deployment["connections_tried"] == {}
    assert result.deployment["synchronous_commit"] == "on"
    assert set(result.steps[0].result.roles) == {"client", BACKENDS, BACKGROUND}
    assert result.audit is not None
    assert "could not be serialized" in result.audit.checked[-1]
    out_text = capsys.readouterr().out
    assert f"pool {access.pool} with 4 connections (as asked for), statement {access.transfer}" in out_text
    assert "audit        passed" in out_text
    (directory,) = (each for each in made if "postgres" in each.name)
    assert not directory.exists()
