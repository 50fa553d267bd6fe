"""The benchmark of reads runs the same requests twice, and only the declared reads stay out of the lock phase."""

from __future__ import annotations

import pytest

from benchmarks.micro import reads
from styx.messages import decode_request


def test_only_the_function_that_reads_differs() -> None:
    declared, undeclared = (reads.requests(2, 0.5, 100, name) for name in ("balance", "balance_undeclared"))
    functions = set()
    for (slot, one), (other_slot, other) in zip(declared, undeclared, strict=True):
        a, b = decode_request(one), decode_request(other)
        assert (slot, a.key, a.params) == (other_slot, b.key, b.params)
        functions.add((a.function, b.function))
    assert functions == {("transfer", "transfer"), ("balance", "balance_undeclared")}


def test_declared_reads_stay_out_of_the_lock_phase(capsys: pytest.CaptureFixture[str]) -> None:
    declared, undeclared = (
        reads.run_once(2, reads.requests(2, 0.5, 200, name)) for name in ("balance", "balance_undeclared")
    )
    assert declared.locked < 0.55 < 0.9 < undeclared.locked
    reads.measure(2, 0.5, 50, 1)
    assert "2 hot keys, 50% reads: read-only" in capsys.readouterr().out
