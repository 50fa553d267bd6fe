"""Bundles come back as they went in, and show any change."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from styx.log.base import Stream
from styx.log.batch import BatchDamaged
from styx.log.bundle import Gathered, bundle, unbundle
from styx.log.tail import Run

RUNS = st.dictionaries(
    st.tuples(st.sampled_from(Stream), st.integers(0, 2**31)),
    st.tuples(st.integers(0, 2**40), st.lists(st.binary(max_size=20), min_size=1, max_size=5)),
    min_size=1,
    max_size=5,
)


def runs_of(drawn: dict[tuple[Stream, int], tuple[int, list[bytes]]]) -> list[Run]:
    return [
        Run(stream, partition, first, [2**62 + each for each in range(len(payloads))], payloads)
        for (stream, partition), (first, payloads) in drawn.items()
    ]


@given(RUNS, st.integers(1, 2**40))
def test_runs_survive_the_round_trip(drawn: dict[tuple[Stream, int], tuple[int, list[bytes]]], first_lsn: int) -> None:
    runs = runs_of(drawn)
    made = bundle(runs, first_lsn)
    assert unbundle(made) == runs
    assert (made.first_offset, made.n_records) == (first_lsn - 1, sum(len(run.payloads) for run in runs))
    assert made.next_offset == made.last_lsn == first_lsn + made.n_records - 1
    for run in runs:
        assert unbundle(made, (run.stream, run.partition)) == [run]
    assert unbundle(made, (Stream.REQUESTS, 2**32)) == []


def test_any_change_is_noticed() -> None:
    made = bundle([Run(Stream.REPLIES, 3, 0, [1, 2], [b"abc", b"de"]), Run(Stream.EPOCHS, 0, 7, [3], [b"f"])], 1)
    for field in ("stream", "partition", "first_offset", "n_records", "last_lsn", "checksum"):
        with pytest.raises(BatchDamaged):
            unbundle(made._replace(**{field: getattr(made, field) ^ 1}))
    for position in range(len(made.body)):
        body = bytearray(made.body)
        body[position] ^= 16
        with pytest.raises(BatchDamaged, match="records 1 to 3 of all partitions does not match"):
            unbundle(made._replace(body=bytes(body)))


def test_gathered_records_are_one_run_for_each_partition() -> None:
    gathered = Gathered()
    gathered.add([Run(Stream.REPLIES, 3, 5, [1], [b"a"]), Run(Stream.EPOCHS, 0, 7, [2], [b"b"])], 10)
    gathered.add([Run(Stream.REPLIES, 3, 6, [3], [b"c"])], 5)
    assert (gathered.n_records, gathered.n_bytes) == (3, 15)
    assert [gathered.holds(Stream.REPLIES, 3, below) for below in (5, 6)] == [False, True]
    assert not gathered.holds(Stream.REPLIES, 4, 100)
    assert gathered.take() == [Run(Stream.REPLIES, 3, 5, [1, 3], [b"a", b"c"]), Run(Stream.EPOCHS, 0, 7, [2], [b"b"])]
    assert (gathered.n_records, gathered.n_bytes, gathered.take()) == (0, 0, [])
