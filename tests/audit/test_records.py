"""Files of records, and the matching of a replay with them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from styx.audit import matching, records
from styx.audit.matching import Matching
from styx.audit.records import Budget, RecordWriter, read_records
from styx.audit.verdict import CannotJudge


@pytest.mark.parametrize("buffer", [1, 7, 64, 100_000])
def test_what_was_written_is_read(tmp_path: Path, buffer: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "BUFFER_BYTES", buffer)
    rng = Random(buffer)
    written: dict[str, list[bytes]] = {"a": [], "b": []}
    with RecordWriter(tmp_path, Budget(10**6)) as writer:
        for _ in range(200):
            name, record = rng.choice("ab"), rng.randbytes(rng.choice([0, 1, 5, 300]))
            writer.append(name, record)
            written[name].append(record)
    assert {name: list(read_records(tmp_path / name)) for name in "ab"} == written
    assert list(read_records(tmp_path / "c")) == []


def test_more_than_the_budget_is_not_written(tmp_path: Path) -> None:
    with RecordWriter(tmp_path, Budget(20)) as writer:
        writer.append("a", b"0123456789")
        with pytest.raises(CannotJudge, match="more than 20 bytes"):
            writer.append("a", b"0123456789")


def matched(*partitions: list[tuple[int, bytes]]) -> Matching[int]:
    def opened(name: str) -> Iterator[tuple[int, bytes]]:
        return iter(partitions[int(name)])

    return Matching(opened)


def test_records_are_found_in_any_order_and_once() -> None:
    found = matched([(1, b"a"), (2, b"b"), (3, b"c")], [(9, b"z")])
    assert [found.take("0", key) for key in (2, 1, 2, 7)] == [b"b", b"a", None, None]
    assert list(found.rest(["0", "1"])) == [(3, b"c"), (9, b"z")]


def test_of_two_records_of_one_key_the_first_one_stands() -> None:
    found = matched([(1, b"a"), (1, b"b"), (2, b"c")])
    assert [found.take("0", key) for key in (2, 1)] == [b"c", b"a"]


def test_what_is_far_ahead_is_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "AHEAD_BYTES_MAX", 1_000)
    found = matched([(key, b"a") for key in range(20)])
    assert found.take("0", 3) == b"a"
    with pytest.raises(CannotJudge, match="not in the order of their epochs"):
        found.take("0", 19)
