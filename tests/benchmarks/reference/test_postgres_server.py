"""How a PostgreSQL server is found and configured, without one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.reference import postgres_server
from benchmarks.reference.postgres_accounting import BACKENDS, BACKGROUND, role_of
from styx.errors import ConfigurationError


def install(directory: Path) -> Path:
    directory.mkdir(parents=True)
    program = directory / "initdb"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return directory


def test_without_postgresql_it_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_server, "DEBIAN", tmp_path / "none")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigurationError, match="apt install postgresql"):
        postgres_server.find_binaries()


def test_the_newest_version_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_server, "DEBIAN", tmp_path)
    for version in ("9.6", "15", "9"):
        install(tmp_path / version / "bin")
    assert postgres_server.find_binaries() == tmp_path / "15" / "bin"


def test_else_the_one_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_server, "DEBIAN", tmp_path / "none")
    binaries = install(tmp_path / "elsewhere").resolve()
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{binaries}")
    assert postgres_server.find_binaries() == binaries


def test_it_listens_on_its_socket_only() -> None:
    text = postgres_server.configuration({"fsync": "on"}, 20_123, Path("/tmp/it's here"))
    assert text == (
        "fsync = 'on'\nlisten_addresses = ''\nport = '20123'\nunix_socket_directories = '/tmp/it''s here'\n"
    )


def test_durability_is_the_default_one() -> None:
    for name in ("fsync", "synchronous_commit", "full_page_writes", "autovacuum"):
        assert postgres_server.SETTINGS[name] == "on"
    assert postgres_server.SETTINGS["default_transaction_isolation"] == "serializable"


@pytest.mark.parametrize(("gib", "mib"), [(4, 1024), (16, 4096), (512, 4096)])
def test_shared_buffers_are_a_quarter_of_the_memory_within_a_limit(gib: int, mib: int) -> None:
    assert postgres_server.shared_buffers_mib(gib << 30) == mib


@pytest.mark.parametrize(
    ("title", "role"),
    [
        ("postgres: postgres postgres [local] idle", BACKENDS),
        ("postgres: postgres postgres [local] SELECT", BACKENDS),
        ("postgres: walwriter ", BACKGROUND),
        ("postgres: autovacuum worker postgres", BACKGROUND),
        ("/usr/lib/postgresql/15/bin/postgres -D data", BACKGROUND),
        ("", BACKGROUND),
    ],
)
def test_roles_of_processes(title: str, role: str) -> None:
    assert role_of(title, "postgres") == role
