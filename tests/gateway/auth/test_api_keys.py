"""API keys and their file: what proves an identity, what does not, and how the file changes."""

import os
import stat
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from styx import ConfigurationError
from styx.gateway.auth import api_keys
from styx.gateway.auth.api_keys import KEYS_MAX, ApiKey, KeyRing, encode, hash_of, new_key, parse
from styx.gateway.auth.identity import NotProved

NOW = datetime(2026, 1, 31, tzinfo=UTC)


def test_a_key_proves_its_name() -> None:
    text, entry = new_key("shop", NOW)
    other, _ = new_key("shop", NOW)
    ring = parse(encode([entry]))
    identity = ring.identify(text, NOW.timestamp())
    assert (identity.name, identity.source, identity.claims) == ("shop", f"key {entry.id}", None)
    changed = [
        text[:-1] + ("0" if text[-1] != "0" else "1"),
        text + "0",
        text[:-1],
        text.upper(),
        text.replace("_", "-"),
    ]
    for wrong in ["", "styx_", f"styx_{entry.id}", f"styx_{entry.id}_", entry.sha256, other, "x" * 10_000, *changed]:
        with pytest.raises(NotProved, match="the credential is not valid"):
            ring.identify(wrong, NOW.timestamp())


def test_the_file_has_no_secret() -> None:
    text, entry = new_key("shop", NOW)
    assert text.encode() not in encode([entry])
    assert text.rpartition("_")[2].encode() not in encode([entry])


def test_keys_are_random() -> None:
    assert len({new_key("a", NOW)[0] for _ in range(100)}) == 100
    assert len(new_key("a", NOW)[0].rpartition("_")[2]) == 40


def test_an_expired_key() -> None:
    text, entry = new_key("shop", NOW, NOW + timedelta(days=1))
    ring = KeyRing([entry])
    assert ring.identify(text, NOW.timestamp()).name == "shop"
    with pytest.raises(NotProved, match="has expired"):
        ring.identify(text, NOW.timestamp() + 24 * 3600)


GOOD = ApiKey("a", "1", hash_of("x"))


@pytest.mark.parametrize(
    "key",
    [
        *(msgspec.structs.replace(GOOD, name=name) for name in ("", "a b", "ä", "x" * 65, "a\n", "*")),
        *(msgspec.structs.replace(GOOD, id=each) for each in ("", "a_b", "é")),
        *(msgspec.structs.replace(GOOD, sha256=each) for each in ("", "x" * 64, "0" * 63, hash_of("x").upper())),
        *(msgspec.structs.replace(GOOD, rate=each) for each in (0.0, -1.0, float("inf"))),
        *(msgspec.structs.replace(GOOD, in_flight=0), msgspec.structs.replace(GOOD, expires=datetime(2026, 1, 1))),  # noqa: DTZ001
    ],
)
def test_entries_that_cannot_be(key: ApiKey) -> None:
    with pytest.raises(ConfigurationError):
        KeyRing([key])


def test_files_that_are_none() -> None:
    for data in (b"", b"{}", b"[]", b'{"keys": 1}', b'{"keys": [{"name": "a"}]}', b'{"keys": [], "x": 1}', b"\xff"):
        with pytest.raises(ConfigurationError, match="no file of API keys"):
            parse(data)
    with pytest.raises(ConfigurationError, match="two API keys have the id 1"):
        KeyRing([GOOD, GOOD])
    with pytest.raises(ConfigurationError, match="is the most"):
        KeyRing([GOOD] * (KEYS_MAX + 1))


def test_the_file_changes_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"

    def add(number: int) -> None:
        api_keys.change_file(path, lambda keys: [*keys, msgspec.structs.replace(GOOD, id=str(number))])

    threads = [threading.Thread(target=add, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(int(key.id) for key in api_keys.read_file(path).keys) == list(range(20))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o640)
    add(20)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640, "its mode is its owner's choice"
    assert list(tmp_path.iterdir()) == [path]


def test_a_change_that_would_break_it_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    api_keys.change_file(path, lambda _: [GOOD])
    before = path.read_bytes()
    with pytest.raises(ConfigurationError, match="two API keys"):
        api_keys.change_file(path, lambda keys: [*keys, GOOD])
    assert path.read_bytes() == before
    with pytest.raises(ConfigurationError, match="cannot be read"):
        api_keys.read_file(tmp_path / "none.json")
    with pytest.raises(ConfigurationError, match="cannot be written"):
        api_keys.change_file(tmp_path / "none" / "keys.json", lambda keys: keys)


def test_a_file_keeps_its_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gateway that runs as another user than whoever revokes a key must go on reading the file."""
    path = tmp_path / "keys.json"
    api_keys.change_file(path, lambda _: [GOOD])
    given: list[tuple[int, int]] = []
    real = os.stat

    def stat_of(name: Any, **options: Any) -> os.stat_result:
        found = real(name, **options)
        if name != path:
            return found
        return os.stat_result((*found[:4], 4321, 1234, *found[6:]))

    monkeypatch.setattr(os, "stat", stat_of)
    monkeypatch.setattr(os, "fchown", lambda _, user, group: given.append((user, group)))
    api_keys.change_file(path, lambda keys: keys)
    assert given == [(4321, 1234)]

    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "fchown", refused)
    before = path.read_bytes()
    with pytest.raises(ConfigurationError, match=r"belongs to user 4321, group 1234.*nothing was changed"):
        api_keys.change_file(path, lambda _: [])
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
