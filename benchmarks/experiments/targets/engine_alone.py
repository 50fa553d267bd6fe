"""The engine in memory, in a fresh process each time, so that no run inherits another one's garbage or heap.

Runs the loops of the micro-benchmark; returns figures and prints nothing.
"""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Final, NamedTuple, TypeVar

import msgspec

from benchmarks.driver.calibration import Calibration, calibrate
from benchmarks.driver.workload import Planned
from benchmarks.micro.__main__ import time_both
from benchmarks.micro.bank import account
from benchmarks.micro.engine_loop import EngineLoop
from benchmarks.reference.cpu_time import cpu_seconds
from benchmarks.reference.transfers import encoded, transfers
from benchmarks.ycsbt.settings import Settings
from benchmarks.ycsbt.workload import YcsbT
from styx.messages import Request, decode_reply, encode_request

SEED: Final = 7
MICRO_SLOTS: Final = 4

T = TypeVar("T")


class Alone(NamedTuple):
    """Microseconds of processor time a transaction; `bare_us` of the bare loop beside it, 0 if it was not run.

    `locked` is the share of transactions that were in conflict.
    """

    engine_us: float
    bare_us: float
    locked: float
    calibration: tuple[Calibration, Calibration]


async def in_fresh_process(measure: Callable[..., T], *arguments: object) -> T:
    """What `measure`, a module's function, returns for these arguments."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return await asyncio.get_running_loop().run_in_executor(pool, measure, *arguments)


def beside_bare_loop(keys: int, count: int) -> Alone:
    """The transfers of the micro-benchmark, by the bare loop and by the engine."""
    before = calibrate()
    drawn = transfers(count, keys, SEED)
    requests = encoded(drawn)
    slots = account.slots_of([debtor for debtor, _, _ in drawn], MICRO_SLOTS)
    bare_s, engine_s, _, replies = time_both(keys, requests, list(zip(slots, requests, strict=True)))
    return Alone(engine_s / count * 1e6, bare_s / count * 1e6, _locked(replies), (before, calibrate()))


def of_workload(settings: Settings, count: int) -> Alone:
    """The transfers of YCSB-T, as the clients of a cluster send them, by the engine."""
    before = calibrate()
    workload = YcsbT(settings)
    engine = EngineLoop(workload.app, settings.n_slots)
    for loading in workload.initial():
        name, encode = loading.operator.name, loading.operator.encode_state
        pairs = list(loading.pairs)
        slots = loading.operator.slots_of([key for key, _ in pairs], settings.n_slots)
        for slot, (key, state) in zip(slots, pairs, strict=True):
            engine.worker.slots[slot].state.table(name).commit(-1, {key: encode(state)})
    generator = workload.generator(0, 1, SEED)
    routed = routed_requests([generator.next() for _ in range(count)], settings.n_slots)
    replies: list[bytes] = []
    engine_s = cpu_seconds(lambda: replies.extend(engine.run(routed)))
    assert len(replies) == count, f"{len(replies)} replies to {count} requests"
    return Alone(engine_s / count * 1e6, 0.0, _locked(replies), (before, calibrate()))


def routed_requests(planned: list[Planned], n_slots: int) -> list[tuple[int, bytes]]:
    """As they stand in the log: with the slot of each."""
    pack = msgspec.msgpack.Encoder().encode
    return [
        (
            one.operator.partition_of(one.key, n_slots) % n_slots,
            encode_request(Request(f"r{number}", one.operator.name, one.key, one.function, pack(one.arguments))),
        )
        for number, one in enumerate(planned)
    ]


def _locked(replies: list[bytes]) -> float:
    return sum(decode_reply(data).phase == 2 for data in replies) / len(replies)
