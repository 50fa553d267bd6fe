"""The engine in memory on the requests of YCSB-T, and what its accounts take in bytes."""

from __future__ import annotations

from benchmarks.experiments.targets.engine_alone import beside_bare_loop, of_workload, routed_requests
from benchmarks.experiments.targets.memory import stored_bytes
from benchmarks.ycsbt.settings import Settings
from benchmarks.ycsbt.workload import YcsbT
from styx.messages import decode_request


def test_requests_are_those_that_clients_would_send() -> None:
    generator = YcsbT(Settings(keys=50, n_slots=2)).generator(0, 1, 1)
    planned = [generator.next() for _ in range(20)]
    for one, (slot, data) in zip(planned, routed_requests(planned, 2), strict=True):
        request = decode_request(data)
        assert (request.key, request.function) == (one.key, "transfer")
        assert slot == one.operator.slots_of([one.key], 2)[0]


def test_each_request_is_answered_and_conflicts_are_counted() -> None:
    apart = of_workload(Settings(keys=5_000, n_slots=2, multi_partition=1.0), 100)
    assert apart.engine_us > 0
    assert of_workload(Settings(keys=2, n_slots=2), 100).locked > apart.locked


def test_the_bare_loop_is_beside_the_engine() -> None:
    alone = beside_bare_loop(1_000, 200)
    assert alone.bare_us > 0
    assert alone.engine_us > 0


def test_bytes_of_an_account() -> None:
    # {"balance": 1000000} takes 14 bytes of msgpack, a key below 128 one.
    assert stored_bytes(Settings(keys=100)) == 15
