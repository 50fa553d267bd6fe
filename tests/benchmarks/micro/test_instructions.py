"""The count of instructions: what valgrind says is read, and what it runs makes the transactions asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.micro import instructions
from benchmarks.micro.instructions import counted, run
from benchmarks.micro.rows import ROWS


def test_what_valgrind_counts_is_read() -> None:
    assert counted("==9== Cachegrind\n==9== \n==9== I refs:        1,234,567\n") == 1_234_567
    assert counted("==9== I   refs:      89\n") == 89
    with pytest.raises(SystemExit, match="counted nothing:\nAborted"):
        counted("Aborted")


@pytest.mark.parametrize("name", ROWS)
def test_what_is_counted_makes_its_transactions(name: str) -> None:
    run(name, 20, 8)


def test_without_valgrind_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SystemExit, match="valgrind is not installed"):
        instructions.instructions("hot", 1)


def test_a_run_that_fails_is_not_counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    valgrind = tmp_path / "valgrind"
    valgrind.write_text("#!/bin/sh\necho 'the row is wrong' >&2\necho '==9== I refs: 1,234' >&2\nexit 3\n")
    valgrind.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match="hot failed under valgrind, with exit status 3:\nthe row is wrong"):
        instructions.instructions("hot", 1)
