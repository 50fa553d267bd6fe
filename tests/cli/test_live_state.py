"""`styx state list`, `export` and `edit` against a gateway before a real engine."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

import styx as product
from styx import App, Context, Operator
from styx.cli.live_state import LiveGateway
from styx.client.embedded import EmbeddedClient
from styx.model.limits import Limits
from tests.cli.conftest import Styx
from tests.gateway.running import running


class Account(msgspec.Struct):
    balance: int
    limit: Decimal = Decimal("0.5")


class Line(msgspec.Struct):
    number: int
    text: str = "a"


account = Operator("account", key_type=str, state_type=Account)
order = Operator("order", key_type=(int, str))
lines = order.table("lines", Line, key="number")


@account.register
async def put(ctx: Context, balance: int) -> None:
    await ctx.put(Account(balance))


app = App("look", [account, order])


class Live:
    """A gateway before an engine, in a thread of its own."""

    def __init__(self, portal: BlockingPortal, client: EmbeddedClient, url: str) -> None:
        self._portal = portal
        self.client = client
        self.url = ("--url", url)

    def call(self, *words: Any) -> Any:
        return self._portal.call(lambda: self.client.call(*words))

    def load(self, operator: Any, pairs: list[Any]) -> None:
        self._portal.call(lambda: self.client.load(operator, pairs))

    def load_rows(self, table: Any, pairs: list[Any]) -> None:
        self._portal.call(lambda: self.client.load_rows(table, pairs))


@pytest.fixture
def live() -> Iterator[Live]:
    with start_blocking_portal() as portal:
        client = product.embedded(app, limits=Limits(versions_max=3))
        with (
            portal.wrap_async_context_manager(client),
            portal.wrap_async_context_manager(running(client.engine)) as server,
        ):
            live = Live(portal, client, server.url)
            live.load(account, [(name, Account(number)) for number, name in enumerate(("ada", "bob", "ä b"))])
            live.load(order, [((1, "x"), {"total": 5})])
            live.load_rows(lines, [((1, "x"), Line(number)) for number in range(3)])
            yield live


def test_a_listing_is_printed_as_that_of_a_snapshot(styx: Styx, live: Live) -> None:
    ran = styx("state", "list", "account", "--limit", "2", *live.url)
    assert (ran.status, ran.out.splitlines()) == (
        0,
        ['{"key":"ada","value":{"balance":0,"limit":"0.5"}}', '{"key":"bob","value":{"balance":1,"limit":"0.5"}}'],
    )
    first, more = ran.err.splitlines()
    assert first.startswith("styx: the end of epoch ")
    epoch = first.split()[5]
    assert more == f"styx: there are more: --after bob --at {epoch}"
    live.call(account, "ä b", put, 9)
    rest = styx("state", "list", "account", "--after", "bob", "--at", epoch, *live.url)
    assert rest.out == '{"key":"ä b","value":{"balance":2,"limit":"0.5"}}\n'
    newest = styx("state", "list", "account", "--prefix", "ä", "--freshness", "strict", *live.url)
    assert '"balance":9' in newest.out
    rows = styx("state", "list", "order/lines", "--prefix", "[1]", "--after", '[1,"x",1]', *live.url)
    assert rows.out == '{"key":[1,"x",2],"value":{"number":2,"text":"a"}}\n'


def test_an_epoch_that_is_not_kept_any_more_says_what_to_do(styx: Styx, live: Live) -> None:
    epoch = styx("state", "list", "account", *live.url).err.split()[5]
    for number in range(5):
        live.call(account, "ada", put, number)
    ran = styx("state", "list", "account", "--at", epoch, *live.url)
    assert (ran.status, ran.out) == (1, "")
    assert "snapshot_too_old" in ran.err
    assert "List on without --at" in ran.err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("nobody",), "has no operator 'nobody'"),
        (("account", "--limit", "0"), "--limit is a number from 1"),
        (("order", "--prefix", "x"), "is a JSON array"),
        (("order/nix",), "has no table 'nix'"),
        (("account", "--at", "1", "--freshness", "strict"), "give one of them"),
    ],
)
def test_a_wrong_listing(styx: Styx, live: Live, words: tuple[str, ...], complaint: str) -> None:
    ran = styx("state", "list", *words, *live.url)
    assert (ran.status, ran.out) == (2, "")
    assert complaint in ran.err


def test_a_snapshot_has_its_epoch(styx: Styx, tmp_path: Path) -> None:
    ran = styx("state", "list", "account", "--at", "3", "--data-dir", str(tmp_path))
    assert (ran.status, "a snapshot has its epoch" in ran.err) == (2, True)


def test_no_gateway(styx: Styx) -> None:
    ran = styx("state", "list", "account", "--url", "http://127.0.0.1:1")
    assert (ran.status, "no gateway answers" in ran.err) == (1, True)


# Edits -----------------------------------------------------------------------------------------------------


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets an editor that runs a line of Python on the text."""

    def use(line: str) -> None:
        script = tmp_path / "editor.py"
        lines = ["import sys, pathlib", "file = pathlib.Path(sys.argv[1])", "text = file.read_text()", line]
        script.write_text("\n".join([*lines, "file.write_text(text)", ""]))
        monkeypatch.setenv("EDITOR", f"{sys.executable} {script}")
        monkeypatch.delenv("VISUAL", raising=False)
        monkeypatch.setenv("TMPDIR", str(tmp_path / "texts"))
        (tmp_path / "texts").mkdir(exist_ok=True)
        monkeypatch.setattr(tempfile, "tempdir", None)

    return use


def left(tmp_path: Path) -> list[str]:
    """The texts that are kept."""
    return [file.read_text() for file in (tmp_path / "texts").iterdir()]


def test_an_edit_in_an_editor(styx: Styx, live: Live, editor: Any, tmp_path: Path) -> None:
    editor("assert text == '{\\n  \"balance\": 1,\\n  \"limit\": \"0.5\"\\n}\\n'; text = text.replace('1', '77', 1)")
    assert styx("state", "edit", "account", "bob", *live.url) == (0, "", "styx: written\n")
    assert live.client.entity(account, "bob") == Account(77)
    assert left(tmp_path) == []
    editor("pass")
    assert styx("state", "edit", "account", "bob", *live.url) == (0, "", "styx: left as it is\n")
    editor("assert text == 'null\\n'; text = '{\"balance\": 3}'")
    assert styx("state", "edit", "account", "new", *live.url).status == 0
    assert live.client.entity(account, "new") == Account(3)


def test_what_was_changed_meanwhile_is_not_overwritten(styx: Styx, live: Live, editor: Any, tmp_path: Path) -> None:
    url = live.url[1]
    editor(
        "import urllib.request as r; "
        f"r.urlopen(r.Request('{url}/v1/account/bob/put', b'[500]', {{'Content-Type': 'application/json'}})); "
        "text = text.replace('1', '77', 1)"
    )
    ran = styx("state", "edit", "account", "bob", *live.url)
    assert (ran.status, ran.out) == (1, "")
    assert "EditConflict: account['bob'] was changed since it was read: it has another value now" in ran.err
    assert "What you wrote is in " in ran.err
    assert live.client.entity(account, "bob") == Account(500)
    assert [msgspec.json.decode(text)["balance"] for text in left(tmp_path)] == [77]


def test_texts_that_cannot_be_written_are_kept(styx: Styx, live: Live, editor: Any, tmp_path: Path) -> None:
    editor('text = \'{"balance": "much"}\'')
    ran = styx("state", "edit", "account", "bob", *live.url)
    assert (ran.status, "does not fit its type" in ran.err) == (2, True)
    editor("text = '{'")
    ran = styx("state", "edit", "account", "bob", *live.url)
    assert (ran.status, "is not JSON" in ran.err) == (2, True)
    editor("sys.exit(3)")
    ran = styx("state", "edit", "account", "bob", *live.url)
    assert (ran.status, "the editor ended with 3" in ran.err) == (1, True)
    assert len(left(tmp_path)) == 3
    assert live.client.entity(account, "bob") == Account(1)


def test_an_editor_that_there_is_not(styx: Styx, live: Live, editor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    editor("pass")
    monkeypatch.setenv("VISUAL", "/nowhere/editor")
    ran = styx("state", "edit", "account", "bob", *live.url)
    assert (ran.status, "Set EDITOR, or use --set" in ran.err) == (1, True)


def test_set_and_delete(styx: Styx, live: Live) -> None:
    assert styx("state", "edit", "account", "bob", "--set", '{"balance":9}', *live.url).status == 0
    assert live.client.entity(account, "bob") == Account(9)
    assert styx("state", "edit", "account", "bob", "--delete", *live.url).status == 0
    assert live.client.entity(account, "bob") is None
    ran = styx("state", "edit", "account", "bob", "--delete", *live.url)
    assert (ran.status, ran.err) == (3, "absent: there is nothing to delete\n")
    assert styx("state", "edit", "order", '[1,"x"]', "--set", "5", *live.url).status == 0
    assert live.client.entity(order, (1, "x")) == 5


def test_rows_are_edited(styx: Styx, live: Live) -> None:
    row = ("state", "edit", "order", '[1,"x"]', "lines", "[1]")
    assert styx(*row, "--set", '{"number":1,"text":"b"}', *live.url).status == 0
    assert live.client.rows(lines, (1, "x")) == [Line(0), Line(1, "b"), Line(2)]
    ran = styx(*row, "--set", '{"number":7}', *live.url)
    assert (ran.status, "would become the row" in ran.err) == (1, True)
    assert styx(*row, "--delete", *live.url).status == 0
    assert live.client.rows(lines, (1, "x")) == [Line(0), Line(2)]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("nobody", "x", "--set", "1"), "has no operator 'nobody'"),
        (("order", "x", "--set", "1"), "must be a JSON array"),
        (("account", "bob", "--set", "1", "--delete"), "give one of them"),
        (("account", "bob", "--set", "{"), "--set is not JSON"),
        (("account", "bob", "--set", "7"), "does not fit its type"),
        (("order", '[1,"x"]', "lines", "--set", "1"), "a row is named by its table and its primary key"),
        (("order", '[1,"x"]', "nix", "[1]", "--set", "1"), "has no table 'nix'"),
        (("order", '[1,"x"]', "lines", "1", "--set", "1"), "pk= is a JSON array"),
        (("order", '[1,"x"]', "lines", '["a"]', "--set", "1"), "column 'number' is of type int"),
        (("order", '[1,"x"]', "lines", "[1,2]", "--set", "1"), "compared with (1, 2)"),
    ],
)
def test_a_wrong_edit(styx: Styx, live: Live, words: tuple[str, ...], complaint: str) -> None:
    ran = styx("state", "edit", *words, *live.url)
    assert (ran.status, ran.out) == (2, "")
    assert complaint in ran.err


# Exports ---------------------------------------------------------------------------------------------------

APP = "tests.cli.test_live_state:app"


def test_an_export_is_that_of_a_snapshot(styx: Styx, live: Live, tmp_path: Path) -> None:
    """With the app's types, file by file and byte by byte but for the order of rows, which a snapshot has by slots."""
    data = tmp_path / "data"
    with product.embedded_sync(app, data) as client:
        client.load(account, [(name, Account(number)) for number, name in enumerate(("ada", "bob", "ä b"))])
        client.load(order, [((1, "x"), {"total": 5})])
        client.load_rows(lines, [((1, "x"), Line(number)) for number in range(3)])
    for format in ("json", "csv"):
        for typed in ((), ("--app", APP)):
            outs = []
            for place in (live.url, ("--data-dir", str(data))):
                out = tmp_path / f"{format}-{len(typed)}-{place[0][2:]}"
                ran = styx("state", "export", "--format", format, "--out", str(out), *typed, *place)
                assert ran.status == 0, ran.err
                files = [file for file in out.rglob("*") if file.is_file()]
                outs.append({str(file.relative_to(out)): sorted(file.read_text().splitlines()) for file in files})
            assert outs[0] == outs[1]
            assert len(outs[0]) == 3


def test_an_export_goes_on_page_by_page_at_one_epoch(styx: Styx, live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("styx.cli.live_export.PAGE", 1)
    ran = styx("state", "export", "account", "--format", "json", "--out", "-", *live.url)
    assert [msgspec.json.decode(line)["key"] for line in ran.out.splitlines()] == ["ada", "bob", "ä b"]
    asked = LiveGateway.page

    def beside_writers(self: LiveGateway, listed: str, prefix: str, after: str | None, *rest: Any) -> Any:
        if after == "bob":
            for number in range(5):
                live.call(account, "ada", put, number)
        return asked(self, listed, prefix, after, *rest)

    monkeypatch.setattr(LiveGateway, "page", beside_writers)
    ran = styx("state", "export", "account", "--format", "json", "--out", "-", *live.url)
    assert ran.status == 1
    assert "snapshot_too_old" in ran.err
    assert "look at a snapshot" in ran.err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("nobody",), "app 'look' has no operator 'nobody'; it has: account, order"),
        (("order/nix",), "operator 'order' has no table 'nix'; it has: lines"),
        (("--app", "examples.bank:app"), "--app is app 'bank', and http"),
    ],
)
def test_a_wrong_export(styx: Styx, live: Live, tmp_path: Path, words: tuple[str, ...], complaint: str) -> None:
    ran = styx("state", "export", *words, "--format", "json", "--out", str(tmp_path / "out"), *live.url)
    assert (ran.status, ran.out) == (2, "")
    assert complaint in ran.err
    assert not (tmp_path / "out").exists()
