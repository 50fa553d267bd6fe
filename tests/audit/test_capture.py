"""Cases that are not whole, and cases that were changed behind the engine's back: each is seen."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

import styx
from proof.bank import account
from styx import App
from styx.audit import capture as capture_module
from styx.audit.capture import _checked, capture, plans
from styx.audit.case import CopiedObjects, read_case, write_case
from styx.audit.course import BEGINNING
from styx.audit.judge import judge
from styx.audit.place import DirectoryPlace, snapshots
from styx.audit.records import Budget, RecordWriter, read_records
from styx.audit.verdict import AGREED, DIFFERS, UNJUDGED, CannotJudge, Verdict
from styx.log.base import Record
from styx.messages import decode_reply, encode_reply
from styx.protocol.manifest import Manifest, SlotManifest, SlotPart
from styx.sequencer.epoch_record import EpochRecord, GenerationMarker, LogEntry, SlotBatch, encode
from tests.audit import planted
from tests.audit.here import audit_of


class Case:
    """A case of two snapshots, whose files a test may change."""

    def __init__(self, directory: Path) -> None:
        asyncio.run(self._record(directory / "data"))
        place = DirectoryPlace(directory / "data", planted.app)
        newest, older = snapshots(place)
        self.directory, self._objects = directory / "case", CopiedObjects(directory / "objects")
        self.directory.mkdir()
        capture(place, older, newest, self.directory, self._objects, Budget(2**30))
        place.close()

    async def _record(self, directory: Path) -> None:
        async with styx.embedded(planted.app, directory, snapshot_interval=1000.0) as client:
            await client.call("thing", "k0", "add")
            assert await client.engine.snapshot()
            for number in range(30):
                await client.call("thing", f"k{number % 6}", "add", number, idempotency_key=f"once-{number}")

    def judged(self) -> Verdict:
        return judge(self.directory, self._objects, planted.app)

    def changed(self, prefix: str, change: Callable[[list[bytes]], Iterable[bytes]]) -> None:
        """Of the files with such names, changes the records of the first one that has some."""
        file = min(file for file in self.directory.iterdir() if file.name.startswith(prefix))
        records = list(read_records(file))
        file.unlink()
        with RecordWriter(self.directory, Budget(2**30)) as writer:
            for record in change(records):
                writer.append(file.name, record)


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path)


def test_a_case_can_be_judged_again(case: Case) -> None:
    first, second = case.judged(), case.judged()
    assert (first.outcome, first.replies, first.events) == (AGREED, 30, 30)
    assert replace(first, seconds=0.0, cpu_seconds=0.0) == replace(second, seconds=0.0, cpu_seconds=0.0)


def test_a_reply_that_is_not_in_the_log(case: Case) -> None:
    case.changed("replies-", lambda records: records[:2] + records[3:])
    verdict = case.judged()
    assert (verdict.outcome, verdict.reply_differences, verdict.state_differences) == (DIFFERS, 1, 0)
    [found] = verdict.first_replies
    assert (found.answered, found.function.endswith("function add")) == ("", True)
    assert "nothing was answered, the replay gives" in verdict.lines()[1]


def test_a_reply_that_no_request_has_given(case: Case) -> None:
    def more(records: list[bytes]) -> Iterator[bytes]:
        yield from records
        last = decode_reply(records[-1])
        yield encode_reply(replace(last, sequence=last.sequence + 4_000, request_id="strange"))

    case.changed("replies-", more)
    verdict = case.judged()
    assert (verdict.outcome, verdict.reply_differences) == (DIFFERS, 1)
    [found] = verdict.first_replies
    assert (found.request_id, found.replayed, found.function) == ("strange", "", "request strange")
    assert "was answered, the replay gives nothing" in verdict.lines()[1]


def test_the_same_reply_at_another_place_of_the_order(case: Case) -> None:
    def later(records: list[bytes]) -> Iterator[bytes]:
        first = decode_reply(records[0])
        yield encode_reply(replace(first, epoch=first.epoch + 1))
        yield from records[1:]

    case.changed("replies-", later)
    [found] = case.judged().first_replies
    assert found.answered.endswith(f"at epoch {found.epoch + 1}, phase 1, transaction {found.tid}")


def test_replies_in_another_order_are_the_same(case: Case) -> None:
    """A recovery appends what was lost behind what was not."""
    case.changed("replies-", lambda records: [*records[3:], *records[:3]])
    assert case.judged().outcome == AGREED


def test_events_that_are_lost_or_strange(case: Case) -> None:
    encode_event = msgspec.msgpack.encode

    def other(records: list[bytes]) -> Iterator[bytes]:
        its_id, _ = msgspec.msgpack.decode(records[0])
        yield encode_event((its_id[:-1] + "7", b"99"))
        yield from records[1:]

    case.changed("events-", other)
    verdict = case.judged()
    assert (verdict.outcome, verdict.event_differences, verdict.differences) == (DIFFERS, 2, 2)
    lost, strange = verdict.first_events
    assert (lost.recorded, strange.replayed) == ("", "")
    assert "the log has nothing, the replay emits" in "\n".join(verdict.lines())


def test_what_was_under_way_is_compared(case: Case) -> None:
    known = read_case(case.directory)
    first, *others = known.after.slots
    part = replace(first.part, next_offset=first.part.next_offset + 1)
    write_case(
        case.directory,
        msgspec.structs.replace(known, after=replace(known.after, slots=[replace(first, part=part), *others])),
    )
    verdict = case.judged()
    assert (verdict.outcome, verdict.state_differences) == (DIFFERS, 1)
    [found] = verdict.first_entries
    assert (found.table, found.key) == ("", "the requests that are sequenced")


def test_requests_that_were_set_aside_are_refused(case: Case) -> None:
    """If it was set aside before it ran, its reply is that."""
    known = read_case(case.directory)
    slot, part = next((each.part.slot, each.part) for each in known.after.slots if each.part.next_offset > 1)
    place = (slot, part.next_offset - 1)
    write_case(case.directory, msgspec.structs.replace(known, aside=[place]))
    verdict = case.judged()
    assert (verdict.outcome, verdict.reply_differences) == (DIFFERS, 1)
    assert "RequestSetAside" in verdict.first_replies[0].replayed


def test_what_an_older_generation_has_written_late_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the newer one's marker was read in an earlier piece."""
    monkeypatch.setattr(capture_module, "PLANNED_RECORDS", 6)

    def record(generation: int, epoch: int, counter: int) -> EpochRecord:
        return EpochRecord(generation, epoch, counter, [SlotBatch(0, counter, counter + 1, 1)])

    ran: list[LogEntry] = [record(1, 0, 0), record(1, 1, 1), GenerationMarker(2, -1, 1), record(2, 2, 2)]
    late = [record(1, 3, 999), record(2, 3, 3), record(2, 4, 4), record(2, 5, 5)]
    made = list(plans(iter([*ran, *late]), 1, -1, -1))
    assert [(plan.epoch, plan.counter) for plan in made] == [(number, number) for number in range(6)]


def test_a_damaged_snapshot_is_not_judged(case: Case) -> None:
    damaged = max((case.directory.parent / "objects").iterdir())
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"!")
    with pytest.raises(CannotJudge, match=r"cannot be read: snapshot object .* is damaged"):
        case.judged()


def manifest(generation: int, epoch: int, end: int, version: int = 1) -> Manifest:
    part = SlotPart(0, 0, [], end, {}, None)
    return Manifest(generation, epoch, 0, [SlotManifest(part, [])], version)


def checked(markers: Iterable[tuple[int, GenerationMarker]], before: Manifest | None, after: Manifest) -> int:
    records = [Record(offset, 0, encode(marker)) for offset, marker in markers]
    records.append(Record(99, 0, encode(EpochRecord(9, 9, 9, []))))
    return len(list(_checked(records, before, after)))


def test_a_void_snapshot_is_not_judged() -> None:
    """Its coordinator did not know of its end, and its epoch runs again with other requests."""
    before, after = manifest(1, 10, 20), manifest(1, 14, 30)
    assert checked([(30, GenerationMarker(2, 10, 1))], before, after) == 2
    with pytest.raises(CannotJudge, match="the snapshot of epoch 14 is void"):
        checked([(29, GenerationMarker(2, 10, 1))], before, after)
    with pytest.raises(CannotJudge, match="the snapshot of epoch 10 is void"):
        checked([(19, GenerationMarker(2, 5, 1))], before, manifest(3, 14, 30))


def test_only_one_version_of_the_app_can_be_judged() -> None:
    after = manifest(3, 14, 30, version=2)
    assert checked([(21, GenerationMarker(3, 10, 2))], manifest(2, 10, 20, version=1), after) == 2
    with pytest.raises(CannotJudge, match="version 1 of the app ran a part of these epochs, and version 2 the rest"):
        checked([(21, GenerationMarker(2, 10, 1)), (25, GenerationMarker(3, 12, 2))], manifest(1, 10, 20), after)
    with pytest.raises(CannotJudge, match="ran a part of these epochs"):
        checked([(25, GenerationMarker(3, 12, 2))], manifest(1, 10, 20), after)


@pytest.mark.anyio
async def test_epochs_of_two_versions(tmp_path: Path) -> None:
    newer = App("planted", [planted.thing, account], events=[planted.told])
    for app in (planted.app, newer):
        async with styx.embedded(app, tmp_path / "data", snapshot_interval=1000.0, keep_log=True) as client:
            await client.call("thing", "a", "add")
    verdict = await audit_of(newer, tmp_path / "data", tmp_path / "scratch", after=BEGINNING).once()
    assert (verdict.outcome, "ran a part of these epochs" in verdict.reason) == (UNJUDGED, True)
    verdict = await audit_of(newer, tmp_path / "data", tmp_path / "scratch").once()
    assert verdict.outcome == AGREED, verdict.lines()
