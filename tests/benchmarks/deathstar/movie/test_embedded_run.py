"""The command from end to end, on an engine in this process: it loads, runs, audits, and its exit status tells."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

pytestmark = pytest.mark.slow

MIXTURE = "--users 20 --movies 10 --mix mixed --zipf 0.9 --unknown-title 0.1 --long-text 0.1"


def run(command: str) -> int:
    from benchmarks.deathstar.movie.options import add_options, make_workload
    from benchmarks.driver.command import main

    return main("deathstar.movie", add_options, make_workload, command.split())


def test_a_run_passes_and_its_witness_is_what_the_audit_goes_by(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, witness = tmp_path / "data", tmp_path / "witness"
    brief = "--rate 300 --warm-up 0.1 --duration 0.6 --quiet"
    assert run(f"run {brief} {MIXTURE} --data-dir {data} --witness {witness}") == 0
    shown = capsys.readouterr().out
    assert "aborted:UnknownMovie" in shown
    assert "aborted:TextTooLong" in shown
    assert "all lists of 10 movies and 20 users" in shown
    assert "each saw the rating of the reviews that it listed" in shown

    assert run(f"audit {MIXTURE} --data-dir {data}") == 0
    assert run(f"audit {MIXTURE} --data-dir {data} --witness {witness}") == 0
    capsys.readouterr()

    file = msgspec.msgpack.decode(witness.read_bytes())
    (report,) = file["clients"]
    report["composed"].pop()
    witness.write_bytes(msgspec.msgpack.encode(file))
    assert run(f"audit {MIXTURE} --data-dir {data} --witness {witness}") == 1
    assert "nobody was told" in capsys.readouterr().out


def test_a_run_in_the_same_place_begins_anew(tmp_path: Path) -> None:
    command = f"run --rate 300 --warm-up 0.1 --duration 0.6 --quiet --users 2 --movies 2 --data-dir {tmp_path}"
    assert run(command) == 0
    assert run(command) == 0


def test_a_mixture_that_cannot_be_is_refused_before_anything_starts(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("run --movies 0") == 2
    assert "at least 1 movie" in capsys.readouterr().err
