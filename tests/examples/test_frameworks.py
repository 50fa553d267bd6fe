"""The bank inside of FastAPI, Flask and Django, and filled from PostgreSQL: each as docs/frameworks.md has it."""

from __future__ import annotations

import asyncio
import importlib
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest

import styx
from examples.bank import app
from styx.testing.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[2]
ORDER = {"payer": "ada", "payee": "bob", "amount": 30}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def fresh(name: str, monkeypatch: pytest.MonkeyPatch, data: Path | None = None) -> ModuleType:
    """The example as a process of its own would import it."""
    monkeypatch.delenv("BANK_URL", raising=False)
    if data is None:
        monkeypatch.delenv("BANK_DATA", raising=False)
    else:
        monkeypatch.setenv("BANK_DATA", str(data))
    monkeypatch.delitem(sys.modules, f"examples.frameworks.{name}", raising=False)
    return importlib.import_module(f"examples.frameworks.{name}")


async def test_fastapi(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for start in range(2):
        web = fresh("fastapi_bank", monkeypatch, tmp_path).web
        transport = httpx.ASGITransport(web)
        async with (
            web.router.lifespan_context(web),
            httpx.AsyncClient(transport=transport, base_url="http://localhost") as http,
        ):
            if start == 0:
                for name, balance in (("ada", 100), ("bob", 0)):
                    opened = await http.post(f"/bank/v1/account/{name}/open", json=[balance])
                    assert opened.status_code == 200
            paid = [await http.post("/transfers", json=ORDER, headers={"Idempotency-Key": "t1"}) for _ in range(2)]
            assert [answer.json() for answer in paid] == [{"left": 70}] * 2
            assert (await http.get("/accounts/bob")).json() == {"balance": 30}
            assert (await http.get("/accounts/nobody")).status_code == 404
            assert (await http.get("/bank/v1/account/bob")).json()["result"] == {"balance": 30}
            assert (await http.post("/transfers", json={**ORDER, "amount": 1000})).status_code == 409
            assert (await http.post("/transfers", json={**ORDER, "amount": -1})).status_code == 422
            assert (await http.get("/bank/readyz")).status_code == 200
            assert (await http.get("/bank/openapi.json")).json()["servers"] == [{"url": "/bank"}]
        async with httpx.AsyncClient(transport=httpx.ASGITransport(web), base_url="http://localhost") as http:
            assert (await http.get("/bank/readyz")).status_code == 503  # it is closed


@pytest.mark.parametrize("name", ["flask_bank", "django_bank"])
def test_blocking_frameworks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    for start in range(2):
        module = fresh(name, monkeypatch, tmp_path)
        if start == 0:
            with module.bank as bank:
                bank.call("account", "ada", "open", 100)
                bank.call("account", "bob", "open", 0)
        application = module.web.wsgi_app if name == "flask_bank" else module.application
        with httpx.Client(transport=httpx.WSGITransport(application), base_url="http://localhost") as http:
            paid = [http.post("/transfers", json=ORDER, headers={"Idempotency-Key": "t1"}) for _ in range(2)]
            assert [answer.json() for answer in paid] == [{"left": 70}] * 2
            assert http.get("/accounts/bob").json() == {"balance": 30}
            assert http.get("/accounts/nobody").status_code == 404
            assert http.post("/transfers", json={**ORDER, "amount": 1000}).status_code == 409
            assert http.post("/transfers", content="{}", headers={"Content-Type": "text/plain"}).status_code == 415
        module.bank.close()


class FakeCursor:
    """Rows as asyncpg's cursor gives them; the real one is in `test_from_a_real_postgres`."""

    def __init__(self, n_rows: int) -> None:
        self.n_rows = n_rows

    async def __aiter__(self) -> AsyncIterator[tuple[str, int]]:
        for n in range(self.n_rows):
            yield f"a{n}", n


class FakeConnection:
    def transaction(self, **_: Any) -> Any:
        return asyncio.Lock()  # something to enter

    def cursor(self, query: str, prefetch: int) -> FakeCursor:
        assert "FROM accounts" in query
        return FakeCursor(3 * prefetch)


async def test_rows_become_accounts(monkeypatch: pytest.MonkeyPatch) -> None:
    module = fresh("from_postgres", monkeypatch)
    async with styx.embedded(app) as bank:
        assert await module.copy_accounts(FakeConnection(), bank) == 3_000
        assert bank.entity("account", "a2999") == {"balance": 2999}


@pytest.fixture
def postgres() -> Iterator[Any]:
    from benchmarks.reference.postgres_server import find_binaries, postgres_server
    from styx.errors import ConfigurationError

    try:
        find_binaries()
    except ConfigurationError as error:
        pytest.skip(str(error))
    with postgres_server() as running:
        yield running


@pytest.mark.slow
async def test_from_a_real_postgres(monkeypatch: pytest.MonkeyPatch, postgres: Any) -> None:
    import asyncpg

    module = fresh("from_postgres", monkeypatch)
    connection = await asyncpg.connect(**postgres.connection())
    try:
        await connection.execute("CREATE TABLE accounts (name text PRIMARY KEY, balance bigint NOT NULL)")
        await connection.execute("INSERT INTO accounts SELECT 'a' || n, n FROM generate_series(1, 5000) AS n")
        async with styx.embedded(app) as bank:
            for _ in range(2):
                assert await module.copy_accounts(connection, bank) == 5_000
            assert bank.entity("account", "a5000") == {"balance": 5000}
            assert len(bank.state()) == 5_000
    finally:
        await connection.close()


@pytest.mark.slow
def test_two_processes_on_one_directory_are_refused_clearly(tmp_path: Path) -> None:
    """As `uvicorn --workers 2` starts them."""
    with styx.embedded_sync(app, tmp_path):
        ran = subprocess.run(
            [sys.executable, "-m", "uvicorn", "--port", "0", "examples.frameworks.fastapi_bank:web"],
            cwd=ROOT,
            env={**os.environ, "BANK_DATA": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
    assert ran.returncode != 0
    assert f"is in use by process {os.getpid()}" in ran.stderr
    assert "Application startup failed" in ran.stderr
