"""The audit of a cluster: every request record has exactly one reply, and a serial execution gives the same replies and
the same state.

The audit trusts only the requests topic. The replies that clients got must be in the replies topic. The cluster must be
at rest; the audit only reads.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from itertools import pairwise
from typing import Final, NamedTuple

import msgspec

from proof import spinning
from proof.bank import money_made
from proof.cluster.cluster import ClusterUnderTest
from proof.cluster.recorded import Topics, newest_manifest, read_topics, snapshot_state
from styx.cluster.options import cluster_limits
from styx.messages import Reply, ReplyRecord, Request, reply_of
from styx.model.app import App
from styx.protocol.manifest import Manifest
from styx.store.base import Store
from styx.testing.history import HistoryReport, SerializabilityViolation, check_history
from styx.testing.patience import PATIENCE_SECONDS
from styx.testing.reads import Seen
from styx.testing.serial import State

REST_SECONDS_MAX: Final = PATIENCE_SECONDS
"""Limit on the time from the last request until all are answered and a snapshot covers them."""
POLL_SECONDS: Final = 0.5
SHOWN_MAX: Final = 5


class AuditFailed(SerializabilityViolation):
    """A promise was broken. The message says which one, and where."""


class Audit(NamedTuple):
    """The numbers of checked records. `records` counts request records, `garbage` records that cannot be decoded."""

    records: int
    garbage: int
    acknowledged: int
    history: HistoryReport


async def audit(cluster: ClusterUnderTest, told: Iterable[Reply], seen: Iterable[Seen] = ()) -> Audit:
    """Waits until the cluster is at rest, then checks everything. `told` are the replies that clients got, `seen` what
    was seen of the state at the end of epochs.

    Raises `SerializabilityViolation`.
    """
    return await asyncio.to_thread(_audit, cluster, list(told), list(seen))


def _audit(cluster: ClusterUnderTest, told: list[Reply], seen: list[Seen]) -> Audit:
    topics, manifest, store = at_rest(cluster)
    requests, replies = answered_once(topics, cluster.options.slots)
    check_told(told, replies)
    state = snapshot_state(store, manifest)
    history = _checked(cluster.app, requests, replies, state, topics, cluster.options.slots, seen)
    made = money_made(state)
    if made:
        raise AuditFailed(f"transfers made {made} out of nothing")
    return Audit(len(requests), topics.garbage, len(told), history)


def at_rest(cluster: ClusterUnderTest) -> tuple[Topics, Manifest, Store]:
    """Waits until all requests are answered and a snapshot covers them. Raises `AuditFailed` if that takes too long."""
    reader, store = cluster.reader(), cluster.open_store()
    deadline_s = time.monotonic() + REST_SECONDS_MAX
    try:
        while True:
            topics = read_topics(reader)
            manifest = newest_manifest(store)
            missing = _not_at_rest(topics, manifest)
            if not missing and manifest is not None:
                return topics, manifest, store
            if time.monotonic() > deadline_s:
                raise AuditFailed(f"the cluster did not come to rest within {REST_SECONDS_MAX:g} s: {missing}")
            time.sleep(POLL_SECONDS)
    finally:
        reader.close()


def _not_at_rest(topics: Topics, manifest: Manifest | None) -> str:
    """The reason why the cluster is not at rest; empty if it is."""
    records = sum(map(len, topics.requests.values()))
    if len(topics.replies) < records:
        return f"{records} requests, {len(topics.replies)} replies"
    if manifest is None:
        return "no snapshot"
    for part in (slot.part for slot in manifest.slots):
        if part.next_offset < topics.ends[part.slot] or part.pending:
            return (
                f"the newest snapshot, of epoch {manifest.epoch}, has slot {part.slot} at offset {part.next_offset} of "
                f"{topics.ends[part.slot]}, with {len(part.pending)} pending"
            )
    return ""


def answered_once(topics: Topics, n_slots: int) -> tuple[dict[str, tuple[Request, int]], list[ReplyRecord]]:
    """Gives requests and replies ids that are unique for each record: SLOT/OFFSET.

    A request may be in the log several times, under one id. A slot numbers its records in order, so its n-th reply by
    sequence belongs to the n-th record. Raises `AuditFailed` if a record has no reply, or several.
    """
    by_slot: dict[int, list[ReplyRecord]] = {slot: [] for slot in topics.requests}
    for reply in topics.replies:
        by_slot[(reply.sequence - 1) % n_slots].append(reply)
    requests: dict[str, tuple[Request, int]] = {}
    replies: list[ReplyRecord] = []
    for slot, records in topics.requests.items():
        answers = sorted(by_slot[slot], key=lambda reply: reply.sequence)
        for first, second in pairwise(answers):
            if first.sequence == second.sequence:
                raise AuditFailed(f"a reply was given twice:\n  first  {first}\n  second {second}")
        for record, answer in zip(records, answers, strict=False):
            if record.request.request_id != answer.request_id:
                raise AuditFailed(
                    f"slot {slot}, offset {record.offset}: request {record.request.request_id} has no reply, or "
                    f"{answer.request_id} has two; the next reply is {answer}"
                )
            name = f"{slot}/{record.offset}"
            requests[name] = (record.request, record.timestamp_us)
            replies.append(msgspec.structs.replace(answer, request_id=name))
        if len(records) != len(answers):
            raise AuditFailed(f"slot {slot} has {len(records)} requests and {len(answers)} replies")
    return requests, replies


def check_told(told: Iterable[Reply], replies: Iterable[ReplyRecord]) -> None:
    """Raises `AuditFailed` if a client got a reply that is not in the replies topic."""
    recorded = {reply.tid: reply_of(reply) for reply in replies if reply.sequence == reply.tid}
    wrong = [
        f"  told {reply}\n  recorded {recorded.get(reply.tid)}"
        for reply in told
        if not _same(reply, recorded.get(reply.tid))
    ]
    if wrong:
        shown = "\n".join(wrong[:SHOWN_MAX])
        raise AuditFailed(f"{len(wrong)} replies were given to clients that the topic does not have:\n{shown}")


def _same(told: Reply, recorded: Reply | None) -> bool:
    if recorded is None or (told.epoch, told.phase) != (recorded.epoch, recorded.phase):
        return False
    return told.result == recorded.result and told.error == recorded.error


def _checked(
    app: App,
    requests: dict[str, tuple[Request, int]],
    replies: list[ReplyRecord],
    state: State,
    topics: Topics,
    n_slots: int,
    seen: list[Seen],
) -> HistoryReport:
    return check_history(
        app,
        requests,
        replies,
        state,
        limits=cluster_limits(),
        n_slots=n_slots,
        externals=topics.externals,
        complete=True,
        around=spinning.as_replied,
        reads=seen,
    )
