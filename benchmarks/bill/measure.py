"""One cluster under bursts: what each role did for an epoch, beyond what it does while nothing happens.

Time, system calls and Python calls are counted in windows of their own, because tracing and counting take time.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import msgspec

from benchmarks.bill.bursts import Bursts
from benchmarks.bill.counted_process import FLUSH_SECONDS, CallCounter, Calls, file_of
from benchmarks.bill.system import traced, used

CLIENT: Final = "client"
IDLE_SECONDS: Final = 4.0
KINDS: Final = ("µs", "wake-ups", "system calls", "bytes", "Python calls", "broker requests", "fetches", "frames")
"""What is counted. Bytes are those that a process writes to sockets and files; frames those that it sends to others of
the cluster; requests those that it sends to the broker, fetches included.
"""
_OF_CALLS: Final = {
    "broker requests": ("conn.py:AIOKafkaConnection.send", "exchanges.py:Exchanges.ask"),
    "fetches": ("wire.py:Fetch.prepare",),
    "frames": ("connection.py:Connection.send",),
}

Counts = dict[str, dict[str, float]]
"""By role and kind."""
Pids = Mapping[str, Sequence[int]]


class Line(msgspec.Struct, frozen=True):
    """Bursts of `size` transactions over one front, on so many workers; `counts` are of an epoch.

    `epochs` is how many epochs a burst took, at the windows' mean.
    """

    workers: int
    front: str
    size: int
    epochs: float
    counts: Counts


class Meter:
    """Counts of one kind of window, with those of an idle cluster to subtract."""

    def __init__(self, counted: Callable[[Window], Coroutine[Any, Any, Counts]]) -> None:
        self._counted = counted
        self._idle: Counts = {}

    async def idle(self) -> None:
        """Learns what is counted in a second without load."""

        async def nothing() -> None:
            await asyncio.sleep(IDLE_SECONDS)

        counts, _, seconds = await self._window(nothing)
        self._idle = {
            role: {kind: value / seconds for kind, value in of_role.items()} for role, of_role in counts.items()
        }

    async def of(self, bursts: Bursts, size: int, number: int) -> tuple[Counts, float]:
        """Of an epoch, and the epochs of a burst."""

        async def load() -> int:
            return await bursts.run(size, number)

        counts, epochs, seconds = await self._window(load)
        assert isinstance(epochs, int)
        return {
            role: {
                kind: max(0.0, value - self._idle.get(role, {}).get(kind, 0.0) * seconds) / epochs
                for kind, value in of_role.items()
            }
            for role, of_role in counts.items()
        }, epochs / number

    async def _window(self, load: Window) -> tuple[Counts, object, float]:
        came: list[object] = []
        seconds = 0.0

        async def timed() -> object:
            nonlocal seconds
            began = time.monotonic()
            came.append(await load())
            seconds = time.monotonic() - began
            return came[0]

        counts = await self._counted(timed)
        return counts, came[0], seconds


Window = Callable[[], Coroutine[Any, Any, object]]


def timing(pids: Pids) -> Meter:
    """Of processor time and wake-ups."""

    async def counted(load: Window) -> Counts:
        before = {role: used(of_role) for role, of_role in pids.items()}
        await load()
        after = {role: used(of_role) - before[role] for role, of_role in pids.items()}
        return {role: {"µs": each.cpu_ns / 1e3, "wake-ups": each.wakeups} for role, each in after.items()}

    return Meter(counted)


def tracing(pids: Pids) -> Meter:
    """Of system calls and the bytes that they wrote."""

    async def counted(load: Window) -> Counts:
        async with AsyncExitStack() as stack:
            tracers = {role: stack.enter_context(traced(of_role)) for role, of_role in pids.items()}
            await load()
        return {
            role: {"system calls": sum(found.calls.values()), "bytes": found.bytes_sent}
            for role, (found,) in tracers.items()
        }

    return Meter(counted)


def calling(pids: Pids, folder: Path) -> Meter:
    """Of Python calls, in processes of `counted_process` that run in `folder`, and in this one."""

    async def counted(load: Window) -> Counts:
        await asyncio.sleep(2 * FLUSH_SECONDS)
        before = {pid: _read(folder, pid) for of_role in pids.values() for pid in of_role if pid != os.getpid()}
        own = CallCounter()
        own.start()
        await load()
        own.stop()
        await asyncio.sleep(2 * FLUSH_SECONDS)
        return {
            role: _sum([own.calls() if pid == os.getpid() else _grown(before[pid], _read(folder, pid)) for pid in each])
            for role, each in pids.items()
        }

    return Meter(counted)


def _read(folder: Path, pid: int) -> Calls:
    calls: Calls = json.loads(file_of(folder, pid).read_text("utf-8"))
    return calls


def _grown(before: Calls, after: Calls) -> Calls:
    return {name: number - before.get(name, 0) for name, number in after.items()}


def _sum(processes: Sequence[Calls]) -> dict[str, float]:
    counts = {"Python calls": float(sum(sum(calls.values()) for calls in processes))}
    for kind, names in _OF_CALLS.items():
        counts[kind] = sum(calls.get(name, 0) for calls in processes for name in names)
    return counts
