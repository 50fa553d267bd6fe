"""`styx backup` and `styx restore` on directories and a fake S3: options, keys, words, exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest

from styx.backup.places import backups, read_index
from styx.backup.restore import restore, verify
from styx.cli.store_options import StorePlace
from styx.errors import ConfigurationError
from styx.store import DirectoryStore, MemoryStore
from tests.backup.snapshots import SECRET, Cluster
from tests.cli.conftest import Styx
from tests.store.fake_s3 import fake_s3

KEYS = {"STYX_S3_ACCESS_KEY": "a", "STYX_S3_SECRET_KEY": "b"}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("STYX_SECRET", "STYX_SECRET_FILE", "STYX_LOG", "STYX_STORE", "STYX_S3_ENDPOINT", *KEYS):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    """Its store is the directory `store`."""
    cluster = Cluster()
    cluster.snapshot(7, {"ada": b"1"})
    cluster.snapshot(8, {"bob": b"2"})
    store = DirectoryStore(tmp_path / "store")
    for name in cluster.store.list(""):
        store.put(name, cluster.store.get(name))
    return cluster


def stamps(folder: Path) -> dict[Path, tuple[int, int]]:
    """What changes when anything in a folder is written, made or removed."""
    return {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in [folder, *folder.rglob("*")]}


def test_a_backup_of_a_directory(styx: Styx, cluster: Cluster, tmp_path: Path) -> None:
    before = stamps(tmp_path / "store")
    words = ["backup", "--store", f"file://{tmp_path}/store", "--to", f"file://{tmp_path}/backups"]
    first, second, third = (styx(*words, *more) for more in ([], ["--keep", "2"], ["--keep", "2"]))
    assert stamps(tmp_path / "store") == before, "the source is read only"
    assert (first.status, second.status, third.status) == (0, 0, 0)
    assert "of app bank: epoch 8, version 3 of the app" in first.out
    assert "1 requests in it were under way" in first.out
    assert "What was acknowledged after epoch 8 is not in it." in first.out
    assert "epoch 8: 2 objects with" in first.err
    assert "deleted" not in second.out
    assert "deleted backup" in third.out
    place = DirectoryStore(tmp_path / "backups")
    assert len(backups(place)) == 2
    store = MemoryStore()
    restore(place, verify(place, *read_index(place), SECRET), store, SECRET, 0.0)
    assert store.list("manifests/")


def test_the_secret_is_not_needed_and_used_if_there(
    styx: Styx, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STYX_STORE", f"file://{tmp_path}/store")
    monkeypatch.setenv("STYX_BACKUP_TO", f"file://{tmp_path}/backups")
    assert styx("backup").status == 0
    monkeypatch.setenv("STYX_SECRET", "not the secret of this cluster")
    ran = styx("backup")
    assert (ran.status, ran.out) == (1, "")
    assert "apps/0000000001, version 1 of the app, cannot be used: the package's signature is wrong" in ran.err
    assert len(backups(DirectoryStore(tmp_path / "backups"))) == 1


@pytest.mark.parametrize(
    ("words", "status", "complaint"),
    [
        (["backup"], 2, "--store"),
        (["backup", "--store", "file:///nowhere/x", "--to", "file:///x"], 2, "names no directory that there is"),
        (["backup", "--store", "file://{here}", "--to", "file://{here}/b"], 2, "no cluster has its data in this store"),
        (["backup", "--store", "file://{here}", "--to", "file://{here}/b", "--keep", "0"], 2, "--keep is a number"),
        (["backup", "--store", "s3://b/x", "--to", "file://{here}/b"], 2, "s3://b/x needs --s3-endpoint"),
        (["restore", "--from", "file:///x"], 2, "--store"),
    ],
)
def test_wrong_usage(styx: Styx, tmp_path: Path, words: list[str], status: int, complaint: str) -> None:
    ran = styx(*(word.format(here=tmp_path) for word in words))
    assert (ran.status, ran.out) == (status, "")
    assert complaint in ran.err
    assert list(tmp_path.iterdir()) in ([], [tmp_path / "b"])


RESTORE = ["restore", "--store", "file://{here}/new", "--log", "kafka://127.0.0.1:1", "--from", "file://{here}/backups"]


@pytest.mark.parametrize(
    ("words", "status", "complaint"),
    [
        (RESTORE, 2, "names no directory that there is"),
        ([*RESTORE[:-1], "file://{here}/store"], 2, "there is no backup here"),
        ([*RESTORE, "--from-secret-file", "{here}/nothing"], 2, "--from-secret-file {here}/nothing cannot be used"),
        ([*RESTORE[:4], "file:///x", *RESTORE[5:]], 2, "is not a Kafka address"),
    ],
)
def test_wrong_restores(
    styx: Styx,
    cluster: Cluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    status: int,
    complaint: str,
) -> None:
    monkeypatch.setenv("STYX_SECRET", SECRET.decode())
    ran = styx(*(word.format(here=tmp_path) for word in words))
    assert (ran.status, ran.out) == (status, "")
    assert complaint.format(here=tmp_path) in ran.err


def test_what_is_checked_in_which_order(
    styx: Styx, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store first, and Kafka before anything is written; what has data already is left alone if told to."""
    here = f"file://{tmp_path}"
    styx("backup", "--store", f"{here}/store", "--to", f"{here}/backups")
    words = [word.format(here=tmp_path) for word in RESTORE]
    assert "the cluster's secret is not set" in styx(*words).err
    monkeypatch.setenv("STYX_SECRET", SECRET.decode())
    ran = styx(*words)
    assert (ran.status, ran.out) == (1, "")
    assert "127.0.0.1:1" in ran.err
    assert DirectoryStore(tmp_path / "new").list("") == []
    words[words.index("--store") + 1] = f"{here}/store"
    assert "the store is not empty" in styx(*words).err
    before = stamps(tmp_path / "store")
    ran = styx(*words, "--if-empty")
    assert (ran.status, ran.out) == (0, "the store has the data of app bank already; nothing was restored\n")
    assert stamps(tmp_path / "store") == before


def test_a_place_without_a_server_of_its_own_is_on_the_store_s() -> None:
    keys = {"access_key": "a", "secret_key": "b"}
    store = StorePlace("s3://b/x", {"s3_endpoint": "http://h:1", "s3_region": "r"})
    same = StorePlace("s3://c/y", {}, "to", store)
    assert same.settings(KEYS) == {"endpoint": "http://h:1", "region": "r", **keys}
    other = StorePlace("s3://c/y", {"s3_endpoint": "http://h:2"}, "to", store)
    assert other.settings(KEYS) == {"endpoint": "http://h:2", **keys}
    elsewhere = StorePlace("s3://c/y", {"s3_region": "q"}, "to", store)
    assert elsewhere.settings(KEYS) == {"endpoint": "http://h:1", "region": "q", **keys}
    with fake_s3() as s3:
        place = StorePlace("s3://bucket/y", {"s3_endpoint": f"http://{s3.endpoint}", "s3_region": "here"}, "to", store)
        place.open(KEYS).put("a", b"1")
        own = {"STYX_TO_S3_ACCESS_KEY": "c"}
        with pytest.raises(ConfigurationError, match=r"s3://bucket/y needs STYX_TO_S3_SECRET_KEY in the environment"):
            place.open({**KEYS, **own})
        s3.requests.clear()
        reader = place.open_to_read(KEYS)
        assert (reader.list(""), reader.get("a")) == (["a"], b"1")
        assert {request.partition(" ")[0] for request in s3.requests} == {"GET"}
    with pytest.raises(ConfigurationError, match=r"needs --from-s3-endpoint, or STYX_FROM_S3_ENDPOINT"):
        StorePlace("s3://c/y", {}, "from", StorePlace("file:///x")).open_to_read(KEYS)
