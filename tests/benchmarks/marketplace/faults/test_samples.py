"""States that were read in the middle of a run are judged with what was known by then, and a wrong one is found."""

from __future__ import annotations

import pickle
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from benchmarks.marketplace.app import app
from benchmarks.marketplace.audit.audit import audit
from benchmarks.marketplace.audit.driven import last_told
from benchmarks.marketplace.audit.reading import CannotRead, calls_of, history_of, state_here
from benchmarks.marketplace.audit.run import Run
from benchmarks.marketplace.faults import samples
from benchmarks.marketplace.faults.samples import Sampler, Until, judged, newest
from benchmarks.marketplace.record import Ended, Record
from benchmarks.marketplace.services.order.rows import orders
from styx.embedded_engine.storage import OBJECTS_NAME
from styx.store.directory import DirectoryStore
from tests.benchmarks.marketplace.audit.workload import EXTRA_SELLERS, Shop, Unchecked
from tests.benchmarks.marketplace.shop import load

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def sampled(tmp_path: Path) -> AsyncIterator[tuple[Run, Sampler]]:
    """A run with one sample in its middle."""
    async with Unchecked(app, tmp_path, 16, None, 3600.0) as cluster:
        await load(cluster, EXTRA_SELLERS, 25)
        before, shop = state_here(cluster), Shop(cluster, 2)
        sampler = Sampler(lambda: DirectoryStore(tmp_path / OBJECTS_NAME), app, tmp_path, 0.0)
        await shop.mix(4)
        assert await cluster.engine.snapshot()
        sample = await sampler.look()
        assert sample is not None
        assert await sampler.look() is None, "there is no newer snapshot"
        assert (sample.epoch, sample.file.parent) == (cluster.engine.last_snapshot_epoch, tmp_path)
        assert sample.encoded > sample.entries > 100
        await shop.mix(2)
        await cluster.advance(timedelta(0))
        history = await history_of(cluster)
        yield (
            Run(
                before=before,
                after=state_here(cluster),
                history=history,
                record=Record.of(shop.asked),
                mirror=shop.mirror(),
                calls=calls_of(app),
                end=last_told(history),
            ),
            sampler,
        )


async def test_a_sample_is_judged_up_to_its_epoch(tmp_path: Path) -> None:
    async with sampled(tmp_path) as (run, sampler):
        assert audit(run) == []
        ((sample, violations),) = judged(run, sampler.taken)
        assert violations == []
        assert {str(each.criterion) for each in audit(replace(run, after=sample.state(), settled=False))} != set()


async def test_a_wrong_row_in_a_sample_is_found(tmp_path: Path) -> None:
    async with sampled(tmp_path) as (run, sampler):
        (sample,) = sampler.taken
        state = sample.state()
        key, row = next(iter(state.all_rows(orders)))
        rows = [each for each in state.rows(orders, key) if each != row]
        row.total_invoice += 1
        state.put_rows(orders, key, [*rows, row])
        sample.file.write_bytes(pickle.dumps(state))
        ((_, violations),) = judged(run, [sample])
        assert "MONEY" in {str(each.criterion) for each in violations}


async def test_requests_after_an_epoch_are_left_out_and_unknown_ones_are_not(tmp_path: Path) -> None:
    async with sampled(tmp_path) as (run, sampler):
        *_, last = run.record
        assert last.place is not None
        unknown = msgspec.structs.replace(last, ended=Ended.UNKNOWN, place=None, result=None)
        until = Until(Record.of([*run.record, unknown]), sampler.taken[0].epoch)
        those = list(until)
        assert those == list(until), "it can be read again"
        assert those[-1] == unknown
        assert last not in those
        assert 1 < len(those) < len(list(run.record))
        assert all(each.place.epoch <= until.epoch for each in those if each.place is not None)


def test_a_store_without_a_snapshot_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "PAUSE_SECONDS", 0.0)
    with pytest.raises(CannotRead, match="no snapshot"):
        newest(DirectoryStore(tmp_path))


async def test_a_sample_is_not_taken_before_it_is_due(tmp_path: Path) -> None:
    def never() -> DirectoryStore:
        raise AssertionError("it is not due")

    assert await Sampler(never, app, tmp_path, 3600.0).look() is None
