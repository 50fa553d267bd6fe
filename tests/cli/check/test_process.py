"""The checking process beside an engine."""

import asyncio
import sys
from pathlib import Path

import pytest

import styx
from styx.cli.app_target import load_app
from styx.cli.check.process import checked
from styx.cli.source_files import imported_files
from styx.reports.mistakes import read_page
from tests.cli.check.test_checker import app

pytestmark = [pytest.mark.slow, pytest.mark.anyio]
SETS = """
from styx import App, Context, Operator
account = Operator("account")
@account.register
async def order(ctx: Context) -> list[str]:
    print("heard once")
    return list({str(n) for n in range(100)})
@account.register
async def credit(ctx: Context) -> int:
    balance = await ctx.get(0) + 1
    await ctx.put(balance)
    return balance
app = App("bank", [account])
"""


async def test_the_order_of_a_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "sets_app.py").write_text(SETS)
    client = styx.embedded(load_app("sets_app:app"))
    with checked(client.engine, "sets_app:app", imported_files(), 300) as begin:
        async with client:
            begin()
            await client.call("account", "a", "credit")
            await client.call("account", "a", "order")
            await client.call("account", "a", "credit")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    _, mistakes = read_page(client.engine.reports.mistakes.page())
    assert [(each.kind, each.function, each.frames[0].line) for each in mistakes] == [("difference", "order", 6)]
    assert capfd.readouterr().out == "heard once\n"


async def test_an_app_that_is_not_there(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    client = styx.embedded(app)
    with checked(client.engine, "no_such_module_at_all:app", {}, 300) as begin:
        async with client:
            begin()
            assert await client.call("account", "a", "credit", 1) == 1
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert any("not run again to check them: there is no module" in record.getMessage() for record in caplog.records)


async def test_other_code_is_not_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    file = tmp_path / "edited_app.py"
    file.write_text(SETS)
    client = styx.embedded(load_app("edited_app:app"))
    with checked(client.engine, "edited_app:app", imported_files(), 300) as begin:
        file.write_text(SETS.replace("+ 1", "+ 22"))
        async with client:
            begin()
            assert await client.call("account", "a", "credit") == 1
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert read_page(client.engine.reports.mistakes.page())[1] == []
    assert any("files have changed" in record.getMessage() for record in caplog.records)
