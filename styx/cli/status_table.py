"""A cluster's state as text for people: a few lines, and one row a worker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from styx.cluster.coordinator.status import SnapshotStatus, Status, WorkerStatus
from styx.model.limits import MIB

FUNCTIONS_SHOWN_MAX: Final = 5
"""Functions that are named as not local; the metrics have all."""
_LEFT = ("worker", "slots", "step")
_RIGHT = ("epoch", "backlog", "unfinished", "lag", "keys", "memory", "heard")


def status_lines(status: Status) -> RenderableType:
    """The output of `styx status`."""
    lines = [Text(f"{'app':<10}{status.app}, {_version(status)}")]
    if status.waiting is not None:
        return Group(*lines, Text(f"{'state':<10}the coordinator waits: {status.waiting}", style="yellow"))
    running = status.phase == "running"
    state = "running" if running else f"{status.phase}: {status.phase_text}"
    lines.append(Text(f"{'state':<10}{state}, generation {status.generation}", style="" if running else "yellow"))
    lines.append(
        Text(
            f"{'speed':<10}epoch {status.epoch}, {status.epochs_per_second:,.1f} epochs/s, "
            f"{status.transactions_per_second:,.0f} transactions/s"
        )
    )
    if status.snapshot is not None:
        lines += _snapshot(status.snapshot)
    members = [worker for worker in status.workers if worker.member]
    others = [worker for worker in status.workers if not worker.member]
    lines.append(_workers(status, members, others))
    gone = [worker.name for worker in others if worker.leaving]
    if gone and len(members) < status.workers_wanted:
        more = status.workers_wanted - len(members)
        text = f"{', '.join(gone)} had to leave: stop it, and start {more} more"
        lines.append(Text(f"{'':<10}{text}", style="yellow"))
    lines.append(Text(f"{'gateways':<10}{', '.join(status.gateways) or 'none'}"))
    lines += _patches(status)
    lines += _carried(status)
    lines += _strangers(status)
    lines += _left(status)
    problems = [
        Text(f"{worker.name} cannot run version {version}: {problem}", style="red")
        for worker in status.workers
        for version, problem in worker.problems.items()
    ]
    return Group(*lines, *problems, _table([*members, *others])) if status.workers else Group(*lines, *problems)


def _workers(status: Status, members: list[WorkerStatus], others: list[WorkerStatus]) -> Text:
    missing = "" if len(members) == status.workers_wanted else f", {status.workers_wanted} wanted"
    auto = " (auto)" if status.workers_auto else ""
    leaving = sum(worker.leaving for worker in status.workers)
    text = f"{len(members)} share {status.n_slots} slots{auto}{missing}"
    text += f", {sum(not worker.leaving for worker in others)} stand by"
    return Text(f"{'workers':<10}{text}" + (f", {leaving} leaving" if leaving else ""), "yellow" if missing else "")


def slots_text(slots: Iterable[int]) -> str:
    """Slot numbers as ranges: 0-3, 7."""
    ranges: list[list[int]] = []
    for slot in sorted(slots):
        if ranges and ranges[-1][1] == slot - 1:
            ranges[-1][1] = slot
        else:
            ranges.append([slot, slot])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def _carried(status: Status) -> list[Text]:
    """Functions whose transactions are carried again and again."""
    counts: dict[str, int] = {}
    for worker in status.workers:
        for function, count in worker.carried.items():
            counts[function] = counts.get(function, 0) + count
    told = ", ".join(
        f"{name} {count:,}" for name, count in sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    )
    text = f"more than twice: {told}; the workers' logs say what changes, and what to do"
    return [Text(f"{'carried':<10}{text}", style="yellow")] if told else []


def _strangers(status: Status) -> list[Text]:
    """What others have tried; each log says the first of it."""
    connections = status.refused + sum(worker.refused for worker in status.workers)
    counts = (
        ("connections refused", connections),
        ("undecodable requests skipped", sum(worker.poison for worker in status.workers)),
        # All workers read the same topics.
        ("records of others passed over", max((worker.strangers for worker in status.workers), default=0)),
    )
    told = ", ".join(f"{count:,} {what}" for what, count in counts if count)
    return [Text(f"{'strangers':<10}{told}; the logs say more", style="yellow")] if told else []


def _left(status: Status) -> list[Text]:
    """Local functions that do not stay on their slot."""
    counts: Counter[str] = Counter()
    for worker in status.workers:
        counts.update(worker.left)
    told = ", ".join(f"{name} {count:,} times" for name, count in counts.most_common(FUNCTIONS_SHOWN_MAX))
    advice = "each costs an epoch more: change partition_key, or drop local=True"
    return [Text(f"{'not local':<10}{told}; {advice}", style="yellow")] if told else []


def _patches(status: Status) -> list[Text]:
    """How often calls between slots changed in lock phases; many transactions given up are worth a look."""
    if not status.patch_rounds:
        return []
    text = f"{'patches':<10}{status.patch_rounds:,} rounds of lock phases, {status.given_up:,} transactions given up"
    return [Text(text, style="yellow" if status.given_up else "")]


def _version(status: Status) -> str:
    version = (
        f"version {status.app_version}" if status.app_version else "no version deployed yet: styx deploy MODULE:APP"
    )
    return version if status.deploying is None else f"{version}; a deployment is under way: {status.deploying}"


def _snapshot(snapshot: SnapshotStatus) -> list[Text]:
    if snapshot.epoch is None:
        newest = "none yet"
    elif snapshot.age_s is None:
        newest = f"epoch {snapshot.epoch}, from before this coordinator"
    else:
        newest = f"epoch {snapshot.epoch}, {_seconds(snapshot.age_s)} ago"
    lines = [Text(f"{'snapshot':<10}{newest}; {snapshot.completed} stored, {snapshot.failures} failed")]
    if snapshot.failing_s is not None:
        why = snapshot.store_problem or "a worker could not store its part; its log says why"
        text = f"{'':<10}snapshots are failing since {_seconds(snapshot.failing_s)}: {why}"
        lines.append(Text(text, style="red"))
    return lines


def _table(workers: list[WorkerStatus]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for column in _LEFT:
        table.add_column(column, no_wrap=column != "slots", overflow="fold")
    for column in _RIGHT:
        table.add_column(column, justify="right", no_wrap=True)
    for worker in workers:
        table.add_row(*_row(worker))
    return table


def _row(worker: WorkerStatus) -> list[str]:
    owns = slots_text(worker.slots) if worker.member else "has left" if worker.leaving else "stands by"
    if worker.member and worker.leaving:
        owns = f"{owns}, leaving"
    if worker.heard_s is None:
        return [worker.name, owns, "silent", *[""] * len(_RIGHT)]
    counts = (worker.epoch, worker.backlog, worker.unfinished, worker.lag, worker.keys)
    return [
        worker.name,
        owns,
        worker.step if worker.member else "",  # of an epoch, in which only who has slots takes part
        *(f"{count:,}" for count in counts),
        f"{worker.memory / MIB:,.0f} MiB",
        f"{worker.heard_s:.1f} s",
    ]


def _seconds(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
