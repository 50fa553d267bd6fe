"""The command from end to end, on an engine in this process: it loads, runs, audits, and its exit status tells."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

pytestmark = pytest.mark.slow

SITE = "--mix reserve-heavy --hotels 30 --rooms 2 --flights 10 --seats 2 --users 20 --zipf 0.5 --wrong-password 0.1"


def run(command: str) -> int:
    from benchmarks.deathstar.hotel.options import add_options, make_workload
    from benchmarks.driver.command import main

    return main("deathstar.hotel", add_options, make_workload, command.split())


def test_a_run_passes_and_its_witness_is_what_the_audit_goes_by(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, witness = tmp_path / "data", tmp_path / "witness"
    brief = "--rate 400 --warm-up 0.1 --duration 0.9 --quiet"
    assert run(f"run {brief} {SITE} --data-dir {data} --witness {witness}") == 0
    shown = capsys.readouterr().out
    for reason in ("NoRoom", "NoSeat", "WrongPassword"):
        assert f"aborted:{reason}" in shown
    assert "30 hotels, 150 flights of a day, 20 users" in shown

    assert run(f"audit {SITE} --data-dir {data}") == 0
    assert run(f"audit {SITE} --data-dir {data} --witness {witness}") == 0
    capsys.readouterr()

    file = msgspec.msgpack.decode(witness.read_bytes())
    (report,) = file["clients"]
    report["made"].popitem()
    witness.write_bytes(msgspec.msgpack.encode(file))
    assert run(f"audit {SITE} --data-dir {data} --witness {witness}") == 1
    assert "which no request without an answer explains" in capsys.readouterr().out
