"""Processor time and memory by role, computed from samples of processes (`processes.py`). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec


class Usage(NamedTuple):
    """One process: processor seconds since its start (user and system), and resident bytes."""

    cpu_s: float
    rss_bytes: int


class Sample(NamedTuple):
    """All processes at one time (`time.monotonic` seconds), by role and PID. `busy_s` is the busy time of all
    processors since the machine started. `stolen_s` is the time that the hypervisor gave to other machines.
    """

    at_s: float
    roles: dict[str, dict[int, Usage]]
    busy_s: float = 0.0
    stolen_s: float = 0.0


class RoleUsage(msgspec.Struct, frozen=True, kw_only=True):
    """The use of one role's processes between two samples. `cores` is their mean number of busy processors."""

    processes: int
    cpu_s: float
    cores: float
    rss_max_bytes: int


class MachineUsage(msgspec.Struct, frozen=True, kw_only=True):
    """The use of the whole machine. `others_s` is the processor time of processes without a role."""

    seconds: float
    busy_s: float
    others_s: float
    stolen_s: float


def usage_by_role(samples: Sequence[Sample]) -> dict[str, RoleUsage]:
    """The use between the first and the last of `samples`. A process that started in between counts from its start. A
    process that ended in between counts up to its last sample.
    """
    seconds = max(samples[-1].at_s - samples[0].at_s, 1e-9)
    first: dict[tuple[str, int], float] = {}
    last: dict[tuple[str, int], float] = {}
    memory: dict[str, int] = {}
    for number, sample in enumerate(samples):
        for role, processes in sample.roles.items():
            memory[role] = max(memory.get(role, 0), sum(usage.rss_bytes for usage in processes.values()))
            for pid, usage in processes.items():
                first.setdefault((role, pid), usage.cpu_s if number == 0 else 0.0)
                last[role, pid] = usage.cpu_s
    used: dict[str, list[float]] = {role: [] for role in memory}
    for (role, pid), cpu_s in last.items():
        used[role].append(cpu_s - first[role, pid])
    return {
        role: RoleUsage(
            processes=len(each), cpu_s=sum(each), cores=sum(each) / seconds, rss_max_bytes=memory.get(role, 0)
        )
        for role, each in used.items()
        if each
    }


def memory_by_process(samples: Sequence[Sample]) -> dict[str, list[int]]:
    """Resident bytes at each sample, by role and PID, such as `worker 123`."""
    found: dict[str, list[int]] = {}
    for sample in samples:
        for role, processes in sample.roles.items():
            for pid, usage in processes.items():
                found.setdefault(f"{role} {pid}", []).append(usage.rss_bytes)
    return found


def machine_usage(samples: Sequence[Sample]) -> MachineUsage:
    """The machine's use between the first and the last of `samples`."""
    before, after = samples[0], samples[-1]
    busy_s = after.busy_s - before.busy_s
    accounted_s = sum(role.cpu_s for role in usage_by_role(samples).values())
    return MachineUsage(
        seconds=after.at_s - before.at_s,
        busy_s=busy_s,
        others_s=max(busy_s - accounted_s, 0.0),
        stolen_s=after.stolen_s - before.stolen_s,
    )
