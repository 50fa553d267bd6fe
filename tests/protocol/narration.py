"""Protocol messages and effects in words, one line each: what the transcripts consist of.

Only names things; a line is the same for equal messages. Never looks at a core.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from styx.coordinator import events as coordinator_events
from styx.messages import EventRecord, ReplyRecord
from styx.model.delivery import delivery_name
from styx.protocol.frames import (
    Ack,
    Call,
    CallSpec,
    Drop,
    ExternalDone,
    Failure,
    Patch,
    Result,
    WorkerMessage,
    decode_outcome,
)
from styx.protocol.manifest import Manifest, PendingTransaction
from styx.protocol.messages import (
    Broken,
    CheckState,
    Commit,
    Conflicts,
    Done,
    Emitted,
    EpochStarted,
    Join,
    Loaded,
    LockDecision,
    LockReport,
    Mark,
    Recover,
    Resume,
    SlotsStored,
    SnapshotEnded,
    SnapshotUnusable,
    StateChecked,
    ToCoordinator,
    ToWorker,
    Validate,
)
from styx.schema.state_findings import StateFindings
from styx.sequencer.epoch_record import EpochRecord, SlotBatch, Verdicts
from styx.state.slot_state import IDEMPOTENCY_TABLE, Delta
from styx.values.codec import decode_plain
from styx.worker import events as worker_events

_OBJECT = re.compile(r"slots/0*(\d+)-0*(\d+)\.(\d+)-0")


def short_names(text: str) -> str:
    """Store names without their zeros: epoch-generation.worker, of which there is one."""
    return _OBJECT.sub(r"\1-\2.w\3", text)


def tids(numbers: Iterable[int]) -> str:
    return " ".join(f"t{number}" for number in numbers)


def path(steps: bytes) -> str:
    """A call path as indices, `/` for the root."""
    return "/" + "/".join(str(int.from_bytes(steps[i : i + 2], "big")) for i in range(0, len(steps), 2))


def failure(failed: Failure) -> str:
    what = "deviates" if failed.deviation else f"{failed.type}: {failed.message}"
    return f"{what} at {path(failed.position)}"


def _number(encoded: bytes) -> str:
    return str(decode_plain(encoded))


def _script(params: bytes) -> str:
    return str(decode_plain(params)[0])


def _answered(message: Loaded | Resume) -> str:
    epoch, phase = message.answered
    return "" if epoch < 0 else f", replies reach epoch {epoch} phase {phase}"


def _calls(calls: list[tuple[bytes, CallSpec]]) -> str:
    return ", ".join(f"{path(p)} {spec.key} ({_script(spec.params)})" for p, spec in calls)


def outcome(encoded: bytes) -> str:
    decoded = decode_outcome(encoded)
    return _number(decoded.value) if decoded.value is not None else ": ".join(decoded.error or ())


# Between workers -----------------------------------------------------------------------------------------------


def worker_message(message: WorkerMessage) -> str:
    if isinstance(message, Call):
        share = "and wait" if message.share < 0 else f"with share 1/{1 << message.share}"
        how = "in sequence" if message.sequential else share
        return f"call t{message.tid}{path(message.path)} {message.key} ({_script(message.params)}) {how}"
    if isinstance(message, Result):
        return _result(message)
    if isinstance(message, Ack):
        return _ack(message)
    if isinstance(message, Drop):
        return f"drop t{message.tid}"
    if isinstance(message, Patch):
        return _patch(message)
    assert isinstance(message, ExternalDone)
    return f"outcome for t{message.tid}: {outcome(message.outcome)}"


def _patch(message: Patch) -> str:
    if message.result is not None:
        what = f"= {_number(message.result)} for slot {message.slot}"
    elif message.call is None:
        what = f"is gone from slot {message.slot}"
    else:
        what = f"is {message.call.key} ({_script(message.call.params)})"
        what += " and wait" if message.call.synchronous else ""
    return f"round {message.round} patch t{message.tid}{path(message.path)} {what}"


def _result(message: Result) -> str:
    value = failure(message.failure) if message.value is None and message.failure else _number(message.value or b"")
    left = f", leaving {_calls(message.calls)}" if message.calls else ""
    return f"result t{message.tid}{path(message.path)} = {value}, {message.count} called" + left + _flags(message)


def _ack(message: Ack) -> str:
    text = f"ack t{message.tid} share {message.share}/{1 << message.scale}, {message.count} called"
    if message.failure is not None:
        text += f", {failure(message.failure)}"
    return text + (f", leaving {_calls(message.calls)}" if message.calls else "") + _flags(message)


def _flags(message: Ack | Result) -> str:
    return "".join(f", {flag}" for flag in ("collided", "overflow", "external", "cut") if getattr(message, flag, False))


# Worker to coordinator -----------------------------------------------------------------------------------------


def to_coordinator(message: ToCoordinator) -> str:
    if isinstance(message, Loaded):
        until, loaded = message.replay_until, "loaded and converted" if message.converted else "loaded"
        return loaded if until < 0 else f"{loaded}, recorded up to epoch {until}{_answered(message)}"
    if isinstance(message, SnapshotUnusable):
        return short_names(f"cannot load: {message.reason}")
    if isinstance(message, EpochStarted | Emitted):
        return f"epoch {message.epoch} {'started' if isinstance(message, EpochStarted) else 'has emitted'}"
    if isinstance(message, Done):
        return f"epoch {message.epoch} done" + _barrier(message)
    if isinstance(message, Conflicts):
        without = f"; {tids(message.unlocked)} not locked" if message.unlocked else ""
        return f"epoch {message.epoch} in conflict here: {tids(message.tids) or 'none'}{without}"
    if isinstance(message, LockReport):
        failed = "; ".join(f"t{t} {failure(f)}" for t, f in message.failures) or "no failure"
        if message.cut:
            failed += f"; a function of {tids(message.cut)} ran too long"
        if message.patched:
            failed += f"; patches of {tids(message.patched)}"
            failed += "".join(f", {count} to w{worker}" for worker, count in sorted(message.sent.items()))
        return f"epoch {message.epoch} round {message.round}: {failed}"
    if isinstance(message, SlotsStored):
        if message.parts is None:
            return f"nothing stored after epoch {message.epoch}"
        return f"{_slots([part.slot for part in message.parts])} after epoch {message.epoch} stored"
    if isinstance(message, StateChecked):
        since = f"what epoch {message.epoch} has" if message.epoch >= 0 else "all"
        return f"{since} checked for version {message.version}: {_findings(message.findings)}"
    assert isinstance(message, Broken)
    return f"cannot go on without w{message.peer}: {message.reason}"


def _findings(findings: StateFindings) -> str:
    offenders = f", but {'; '.join(findings.first)}" if findings.offenders else ""
    migrated = f", {sum(findings.migrated.values())} to be converted" if findings.migrated else ""
    return f"{findings.checked} entities{migrated}{offenders}"


def _barrier(message: Done | Validate) -> str:
    lists = [(name, getattr(message, name)) for name in ("aborted", "collided", "deferred", "large")]
    return f", {message.new_max} new" + "".join(f"; {name} {tids(found)}" for name, found in lists if found)


# Coordinator to worker -----------------------------------------------------------------------------------------


def to_worker(message: ToWorker) -> str:
    if isinstance(message, Recover):
        owners = ", ".join(f"slot {slot} on w{owner}" for slot, owner in sorted(message.owners.items()))
        version = f" on version {message.app_version}" if message.app_version else ""
        return f"recover from {snapshot(message.manifest)}{version}; {owners}"
    if isinstance(message, Resume):
        return f"resume{_answered(message)}"
    if isinstance(message, Join):
        return f"epoch {message.epoch} join"
    if isinstance(message, Validate):
        return f"epoch {message.epoch} validate" + _barrier(message)
    if isinstance(message, Commit):
        locked = f" all but {tids(message.locked)}" if message.locked else ""
        return f"epoch {message.epoch} commit{locked}" + _then(message)
    if isinstance(message, LockDecision):
        return f"epoch {message.epoch} round {message.round}: {_verdict(message)}" + _then(message)
    if isinstance(message, CheckState):
        return "check no more state" if message.version is None else f"check all state for version {message.version}"
    if isinstance(message, Mark):
        return f"epoch {message.epoch} mark the events"
    assert isinstance(message, SnapshotEnded)
    return f"snapshot of epoch {message.epoch} {'complete' if message.complete else 'failed'}"


def _then(message: Commit | LockDecision) -> str:
    asked = ", then a snapshot" if message.snapshot else ""
    asked += f", of {_slots(message.whole)} with everything" if message.whole else ""
    return asked + (", and hold until it has ended" if message.hold else "")


def _slots(numbers: list[int]) -> str:
    return f"slot{'s' if len(numbers) > 1 else ''} {' '.join(map(str, numbers))}"


def _verdict(decision: LockDecision) -> str:
    if decision.final:
        return "commit the rest"
    out = ", ".join(f"t{t} (carried)" if f is None else f"t{t} ({f.type}, final)" for t, f in decision.excluded)
    patches = [f"{count} patches for w{worker}" for worker, count in sorted(decision.awaited.items())]
    return ", ".join([f"{'anew ' if decision.anew else ''}without {out}" if out else "another round", *patches])


def snapshot(manifest: Manifest | None) -> str:
    if manifest is None:
        return "nothing"
    return f"the snapshot of epoch {manifest.epoch} (generation {manifest.generation})"


# Effects on the log and the store ------------------------------------------------------------------------------


def epoch_record(record: EpochRecord) -> str:
    return f"appends the record of epoch {record.epoch}: " + ", ".join(_batch(batch) for batch in record.batches)


def verdicts(record: Verdicts) -> str:
    told = [f"t{t} leaves it" if error is None else f"t{t} ends in {error[1]}: {error[2]}" for t, error in record.ended]
    told += [f"{tids(record.unlocked)} not locked"] if record.unlocked else []
    return f"appends verdicts of epoch {record.epoch}: " + ", ".join(told)


def _batch(batch: SlotBatch) -> str:
    if batch.idle:
        return f"slot {batch.slot} idle"
    offsets = f"offsets {batch.first} to {batch.next - 1}" if batch.next > batch.first else "nothing new"
    passed = f" but for {' '.join(map(str, batch.passed))}" if batch.passed else ""
    late = f" and {' '.join(map(str, batch.late))} late" if batch.late else ""
    resumed = f" and resumes {tids(r.tid for r in batch.resumed)}" if batch.resumed else ""
    due = f" and {batch.due} due at {_seconds(batch.now_us)}" if batch.due else ""
    return f"slot {batch.slot} {offsets}{passed}{late}{resumed}{due}"


def _seconds(time_us: int) -> str:
    return f"{time_us / 1e6:g} s"


def reply(record: ReplyRecord) -> str:
    value = (
        _number(record.result) if record.error is None else f"{record.error[0]} {record.error[1]}: {record.error[2]}"
    )
    name = delivery_name(record.request_id)
    what = record.request_id
    if name is not None:
        calls = "a call for later" if name.together == 1 else f"{name.together} calls for later together"
        what = f"{calls}{' that failed' * name.puts_off}"
    repeated = "" if record.sequence == record.tid else f" (asked again as t{record.sequence})"
    return f"{what} = {value} (epoch {record.epoch}, phase {record.phase}, t{record.tid}){repeated}"


def _event(record: EventRecord) -> str:
    return f"{_number(record.payload)} of {record.key} (epoch {record.epoch}, phase {record.phase}, t{record.tid})"


def delta(changes: Delta) -> str:
    """The changes of user state in words; remembered replies are counted."""
    parts = [
        f"{key}={'gone' if value is None else _number(value)}"
        for operator, entries in sorted(changes.items())
        if operator != IDEMPOTENCY_TABLE
        for key, value in sorted(entries.items())
    ]
    remembered = len(changes.get(IDEMPOTENCY_TABLE, ()))
    return " ".join(parts + ([f"{remembered} remembered"] if remembered else [])) or "no change"


def _pending(transaction: PendingTransaction) -> str:
    marks = [mark for mark in ("sequential", "parked") if getattr(transaction, mark)]
    return f"t{transaction.tid}" + (f" ({', '.join(marks)})" if marks else "")


def _content(content: worker_events.SlotContent) -> str:
    pending = f"; pending {', '.join(map(_pending, content.pending))}" if content.pending else ""
    what = f"slot {content.slot}{' with everything' if content.whole else ''}"
    over = content.passed_over
    passed = f", passed over of those before {over.sequenced}: {' '.join(map(str, over.offsets))}" if over else ""
    return f"{what}: {delta(content.delta)}; input from offset {content.next_offset}{passed}{pending}"


def worker_effect(effect: worker_events.Effect) -> str:
    """Effects that are not messages."""
    if isinstance(effect, worker_events.LoadState):
        what = "loads, for another version," if effect.converting is not None else "loads"
        return f"{what} {snapshot(effect.manifest)} for slots {' '.join(map(str, effect.slots)) or 'none'}"
    if isinstance(effect, worker_events.StoreSlots):
        return "stores " + " / ".join(map(_content, effect.slots))
    if isinstance(effect, worker_events.AppendExternal):
        what = "intent to run the external function" if effect.record.outcome is None else "external function's outcome"
        return f"appends t{effect.record.tid}'s {what}"
    if isinstance(effect, worker_events.RunExternal):
        return f"runs the external function of t{effect.tid}: {' '.join(map(str, effect.args))}"
    if isinstance(effect, worker_events.EmitEvents):
        return "emits " + "; ".join(map(_event, effect.events))
    if isinstance(effect, worker_events.MarkEvents):
        return f"marks the events up to epoch {effect.epoch}"
    if isinstance(effect, worker_events.EventDiffers):
        return f"finds another event of {effect.event} in the log of slot {effect.slot}"
    if isinstance(effect, worker_events.WakeAt):
        return f"wants to be woken at {_seconds(effect.due_us)}"
    if isinstance(effect, worker_events.CallGivenUp):
        called = f"the call of {effect.key} that {effect.giver_key} gave for later"
        return f"gives up {called}, after {effect.attempts} attempts: {': '.join(effect.error)}"
    if isinstance(effect, worker_events.ReportLeft):
        counts = ", ".join(f"{count} of {name}" for (_, name), count in effect.functions.items())
        return f"reports local transactions that left their slot: {counts}"
    assert isinstance(effect, worker_events.ReportPoison)
    return f"reports poison in slot {effect.slot} at offset {effect.offset}: {effect.reason}"


def coordinator_effect(effect: coordinator_events.Effect) -> str:
    """Effects that are not messages."""
    if isinstance(effect, coordinator_events.FenceMembers):
        return f"has the log refuse what generations before {effect.generation} append"
    if isinstance(effect, coordinator_events.AppendMarker):
        base = "no snapshot" if effect.snapshot_epoch < 0 else f"the snapshot of epoch {effect.snapshot_epoch}"
        version = f", version {effect.app_version}" if effect.app_version else ""
        return f"appends the marker of generation {effect.generation}, on {base}{version}"
    if isinstance(effect, coordinator_events.Expel):
        return f"expels w{effect.worker}: {effect.reason}"
    if isinstance(effect, coordinator_events.ReleaseWorker):
        return f"lets w{effect.worker} go"
    if isinstance(effect, coordinator_events.StoreManifest):
        return "stores the manifest: " + manifest(effect.manifest)
    if isinstance(effect, coordinator_events.AppendNote):
        return f"appends the note that the snapshot of epoch {effect.epoch} is complete"
    if isinstance(effect, coordinator_events.DeleteManifest):
        return f"deletes the manifest of epoch {effect.epoch} (generation {effect.generation})"
    if isinstance(effect, coordinator_events.DeleteObjects):
        return short_names(f"deletes {' '.join(effect.names)}")
    if isinstance(effect, coordinator_events.SweepObjects):
        return short_names(f"sweeps the store of all but {' '.join(sorted(effect.keep)) or 'nothing'}")
    if isinstance(effect, coordinator_events.ReleaseLog):
        requests = ", ".join(f"slot {slot} below {offset}" for slot, offset in sorted(effect.requests.items()))
        return f"releases the log: {requests}; epochs below {effect.epochs}"
    if isinstance(effect, coordinator_events.StateFound):
        return f"has had the state checked for version {effect.version}: {_findings(effect.findings)}"
    return _end(effect)


def _end(effect: coordinator_events.Effect) -> str:
    if isinstance(effect, coordinator_events.StopEnded):
        return f"has stopped: {'everything is stored' if effect.stored else 'there is no last snapshot'}"
    assert isinstance(effect, coordinator_events.Refuse)
    return short_names(f"refuses to serve: {effect.reason}")


def manifest(whole: Manifest) -> str:
    chains = "; ".join(f"slot {s.part.slot}: {' '.join(ref.name for ref in s.objects) or 'empty'}" for s in whole.slots)
    return short_names(f"epoch {whole.epoch}, counter {whole.counter}; {chains}")


def generation_of(message: msgspec.Struct) -> int:
    generation: int = message.generation  # type: ignore[attr-defined]
    return generation
