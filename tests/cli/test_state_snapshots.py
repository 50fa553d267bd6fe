"""`styx state get`, `list` and `export` over a data directory, a store and a backup, without anything running."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from styx.backup.take import take_backup
from styx.store import DirectoryStore
from tests.backup.snapshots import Cluster
from tests.cli.conftest import Styx
from tests.query.conftest import Filled, filled  # noqa: F401 - a fixture

APP = "tests.query.shop:app"


@pytest.fixture
def data(filled: Filled) -> tuple[str, str]:  # noqa: F811 - the fixture
    """The options that name the filled directory."""
    return "--data-dir", str(filled.directory)


def test_get(styx: Styx, data: tuple[str, str]) -> None:
    ran = styx("state", "get", "account", "ada", *data)
    assert (ran.status, ran.out) == (0, '{"balance":6}\n')
    assert ran.err.startswith("styx: the snapshot of epoch ")
    assert ran.err.endswith("; what was committed after it is not shown\n")
    assert styx("state", "get", "counter", "-5", *data).out == "1\n"
    assert styx("state", "get", "order", '[1,"y/z"]', *data).out == '{"total":"1.10","lines":1,"note":null}\n'
    assert styx("state", "get", "order", '[1,"y/z"]', "--rows", "lines", *data).out == '[[0,"line 0",0]]\n'
    of_app = styx("state", "get", "cart", "cart-01", "--rows", "mine", "--app", APP, *data)
    assert msgspec.json.decode(of_app.out)[0]["max_price"] == "9.25"


def test_get_of_what_there_is_not(styx: Styx, data: tuple[str, str]) -> None:
    ran = styx("state", "get", "account", "eve", *data)
    assert (ran.status, ran.out) == (3, "")
    assert ran.err.endswith("absent: account['eve'] has no state\n")
    for words, complaint in (
        (("acount", "x"), "it has: account, cart, counter, order"),
        (("counter", "x"), "must be a decimal number, got 'x'"),
        (("cart", "x", "--rows", "itms"), "operator 'cart' has no table 'itms'; it has: item-sold, items"),
    ):
        ran = styx("state", "get", *words, *data)
        assert (ran.status, ran.out) == (2, "")
        assert complaint in ran.err


def test_list_goes_on_with_what_it_says(styx: Styx, data: tuple[str, str]) -> None:
    first = styx("state", "list", "account", "--limit", "3", *data)
    keys = [msgspec.json.decode(line)["key"] for line in first.out.splitlines()]
    assert keys == ["ada", "bob", "empty value"]
    assert first.err.endswith("styx: there are more: --after 'empty value'\n")
    rest = styx("state", "list", "account", "--after", "empty value", *data)
    assert [msgspec.json.decode(line)["key"] for line in rest.out.splitlines()] == ["late", "ädä"]
    assert "there are more" not in rest.err
    assert styx("state", "list", "order", "--prefix", "[2]", *data).out.count("\n") == 2
    assert styx("state", "list", "cart/items", "--prefix", '["cart-00"]', *data).out.count("\n") == 4


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("account", "--limit", "0"), "--limit is a number from 1 to 10000, got 0"),
        (("counter", "--prefix", "1"), "are numbers, which have no prefix"),
        (("order", "--after", "x"), "must be a JSON array"),
        (("cart/mine",), "views are shown with --app MODULE:APP"),
        (("nobody",), "app 'look' has no operator 'nobody'"),
    ],
)
def test_a_wrong_list(styx: Styx, data: tuple[str, str], words: tuple[str, ...], complaint: str) -> None:
    ran = styx("state", "list", *words, *data)
    assert (ran.status, ran.out) == (2, "")
    assert complaint in ran.err


def test_export(styx: Styx, data: tuple[str, str], tmp_path: Path) -> None:
    ran = styx("state", "export", "--format", "csv", "--out", str(tmp_path / "all"), "--app", APP, *data)
    assert ran.status == 0
    assert f"order/lines: 6 rows, {tmp_path}/all/order/lines.csv\n" in ran.out
    text = (tmp_path / "all" / "order.csv").read_text().splitlines()
    assert text[0] == "key,key_2,total,lines,note"
    assert sorted(text[1:])[:2] == ["1,x,0.00,0,", "1,y/z,1.10,1,"]
    file = tmp_path / "lines.parquet"
    assert styx("state", "export", "order/lines", "--format", "parquet", "--out", str(file), *data).status == 0
    assert file.read_bytes()[:4] == b"PAR1"
    for words, complaint in (
        (("nobody", "--out", "x"), "has no operator 'nobody'"),
        (("account", "cart", "--out", "-"), "takes one operator or table"),
    ):
        ran = styx("state", "export", *words, "--format", "json", *data)
        assert (ran.status, ran.out) == (2, "")
        assert complaint in ran.err
    assert styx("state", "export", "--format", "xml", "--out", "x", *data).status == 2


def test_a_store_and_a_backup(styx: Styx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    cluster.snapshot(10, {"a": b"1"})
    cluster.snapshot(20, {"a": b"2"})
    store, place = DirectoryStore(tmp_path / "store"), DirectoryStore(tmp_path / "backups")
    for name in cluster.store.list(""):
        store.put(name, cluster.store.get(name))
    name = take_backup(store, place, datetime(2026, 1, 2, tzinfo=UTC)).name
    url = f"file://{tmp_path}/store"
    for words, told in (
        (("--store", url), "the snapshot of epoch 20;"),
        (("--store", url, "--snapshot", "10"), "the snapshot of epoch 10;"),
        (("--from", f"file://{tmp_path}/backups"), f"backup {name}, epoch 20;"),
    ):
        ran = styx("state", "get", "account", "a", *words)
        assert ran.status == 2
        assert "has no operator 'account'; it has: none" in ran.err, "the package of this store declares nothing"
        ran = styx("state", "export", "--format", "json", "--out", str(tmp_path / "out"), *words)
        assert ran.status == 0
        assert told in ran.err
    ran = styx("state", "list", "account", "--store", url, "--snapshot", "15")
    assert (ran.status, ran.out) == (2, "")
    assert "a snapshot is latest, or one of the epochs 20, 10" in ran.err
    monkeypatch.setenv("STYX_SECRET", "x" * 64)
    assert "the package's signature is wrong" in styx("state", "list", "account", "--store", url).err


def test_which_place(styx: Styx, tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".styx").mkdir()
    ran = styx("state", "list", "account")
    assert (ran.status, ran.out) == (2, "")
    assert "say whose snapshot: --store, --from or --data-dir. --data-dir .styx is here." in ran.err
    assert "two places" in styx("state", "list", "account", "--from", "file:///x", "--data-dir", ".styx").err
    ran = styx("state", "get", "account", "a", "--data-dir", ".styx")
    assert (ran.status, ran.out) == (2, "")
    assert ".styx is no data directory" in ran.err
    assert "say whose snapshot" in styx("state", "get", "account", "a", "--snapshot", "latest").err
    monkeypatch.setenv("STYX_STORE", f"file://{tmp_path}/nothing")
    assert "snapshot" not in styx("state", "get", "shelf", "a", "--url", url).err, "the gateway is asked"
    assert "names no directory that there is" in styx("state", "get", "a", "a", "--snapshot", "latest").err


def test_another_app(styx: Styx, data: tuple[str, str]) -> None:
    ran = styx("state", "list", "account", "--app", "examples.bank:app", *data)
    assert (ran.status, ran.out) == (2, "")
    assert "--app examples.bank:app is app 'bank', and the data is of 'look'" in ran.err


@pytest.mark.parametrize("command", ["get", "list", "export"])
def test_help(styx: Styx, command: str) -> None:
    out = styx("state", command, "--help").out
    for text in (
        "--data-dir",
        "--snapshot",
        "STYX_S3_SECRET_KEY",
        "STYX_FROM_S3_SECRET_KEY",
        "Examples:",
        "Exit codes:",
    ):
        assert text in out
    assert all(not line.endswith(" ") for line in out.splitlines())
