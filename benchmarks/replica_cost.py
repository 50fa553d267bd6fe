"""What a replica costs: a snapshot of many rows taken, the first and the later queries of it, and the next snapshot.

`python -m benchmarks.replica_cost [ROWS]` makes a store of a million rows in 16 slots in memory, follows it, and asks
one query with groups. It prints wall time, the processor time of this process and that of its ended children, which are
the queries' processes, and the process's memory. The next snapshot changes one row in a hundred.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, Final
from zlib import crc32

import msgspec

from styx.protocol.manifest import Manifest, ObjectRef, SlotManifest, SlotPart
from styx.query.schema import of_description
from styx.query.service import Asked, Limits
from styx.query.source import Place
from styx.replica.arrow_rows import ArrowRows
from styx.replica.follower import Follower
from styx.replica.process import ReplicaProcess
from styx.replica.service import Places
from styx.replica.source import SnapshotSource
from styx.schema.description import AppDescription, OperatorDescription, TableDescription
from styx.snapshot.manifest import write_manifest
from styx.snapshot.part import encode_delta, object_name, reference
from styx.store import MemoryStore
from styx.values.codec import encode_strict

ROWS: Final = 1_000_000
SLOTS: Final = 16
CHANGED_SHARE: Final = 100
SELLERS: Final = 1_000
WARM_RUNS: Final = 5
QUERY: Final = "select seller, count(*), sum(price), max(quantity) from cart.items group by seller"
LIMITS: Final = Limits(512, 60.0, 100_000)
_COLUMNS: Final = {"product": "int", "seller": "int", "price": "Decimal", "quantity": "int", "name": "str"}


class Cost(msgspec.Struct):
    """Seconds: of the clock, of this process, and of the query's process."""

    wall: float = 0.0
    own: float = 0.0
    query: float = 0.0


@contextmanager
def measured() -> Iterator[Cost]:
    """The cost of what is done within."""
    cost = Cost()
    wall, own, query = time.perf_counter(), time.process_time(), _children()
    yield cost
    cost.wall = time.perf_counter() - wall
    cost.own = time.process_time() - own
    cost.query = _children() - query


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Snapshots:
    """A store with rows of carts, and what a cluster would store of them."""

    def __init__(self, rows: int) -> None:
        self.store = MemoryStore()
        self._rows = rows
        self._chains: dict[int, list[ObjectRef]] = {slot: [] for slot in range(SLOTS)}

    def take(self, epoch: int, changed: Callable[[int], bool]) -> None:
        """Stores the rows whose numbers `changed` names, as of that epoch."""
        slots = []
        for slot in range(SLOTS):
            rows: dict[Any, bytes | None] = {
                (f"cart-{number // 10}", number): _row(number, epoch)
                for number in range(slot, self._rows, SLOTS)
                if changed(number)
            }
            name = object_name(slot, 1, epoch, 0)
            data = encode_delta({"cart/items": rows})
            self.store.put(name, data)
            ref = reference(name, data)
            self._chains[slot].append(ref)
            slots.append(SlotManifest(SlotPart(slot, 0, [], 0, {}, ref), list(self._chains[slot])))
        write_manifest(self.store, Manifest(1, epoch, epoch, slots, 1))


def _row(number: int, epoch: int) -> bytes:
    row = {
        "product": number,
        "seller": number % SELLERS,
        "price": str(Decimal(number % 10_000) / 100),
        "quantity": epoch,
        "name": f"product number {number}",
    }
    return encode_strict(row)


def described(_: int) -> AppDescription:
    """The app whose rows they are."""
    items = TableDescription(columns=_COLUMNS, key=["product"])
    cart = OperatorDescription(
        n_partitions=None, key_type="str", partition_key=False, functions={}, tables={"items": items}
    )
    return AppDescription(name="shop", operators={"cart": cart})


async def asked(replica: ReplicaProcess) -> int:
    """Rows of the query's result."""
    async with replica.service.run(Asked(QUERY), LIMITS) as answer:
        return sum([batch.num_rows async for batch in answer.batches])


async def run(rows: int) -> None:
    """Measures and prints."""
    snapshots = Snapshots(rows)
    snapshots.take(1, lambda _: True)
    follower = Follower(lambda: Place(snapshots.store, described), of_description, 2**40)
    replica = ReplicaProcess(SnapshotSource(follower), ArrowRows(2**40, 10_000), Places(1, 1), LIMITS)
    await replica.service.open()
    told("before", Cost())
    with measured() as cost:
        assert follower.look(), follower.trouble
    told(f"the first snapshot, {rows} rows", cost)
    with measured() as cost:
        assert await asked(replica) == min(SELLERS, rows)
    told("the first query: its rows are made", cost)
    for _ in range(WARM_RUNS):
        await asyncio.sleep(2)  # the next process has started
        with measured() as cost:
            await asked(replica)
        told("the query again", cost)
    snapshots.take(2, lambda number: crc32(b"%d" % number) % CHANGED_SHARE == 0)
    with measured() as cost:
        assert follower.look(), follower.trouble
    told(f"a snapshot, 1 row in {CHANGED_SHARE} changed", cost)
    await asyncio.sleep(2)
    with measured() as cost:
        await asked(replica)
    told("the query after it", cost)
    state, made = replica.now().state.bytes, replica.status()["rows_bytes"]
    print(f"told: encoded state {state / 2**20:.0f} MiB, rows made {int(str(made)) / 2**20:.0f} MiB")
    await replica.service.close()


def told(what: str, cost: Cost) -> None:
    """Prints a line."""
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    print(
        f"{what:40} wall {cost.wall * 1e3:8.1f} ms, processor {cost.own * 1e3:8.1f} + {cost.query * 1e3:7.1f} ms, "
        f"memory {resident:6.0f} MiB",
        flush=True,
    )


def main() -> None:
    """Runs with the number of rows that is given, or a million."""
    parser = argparse.ArgumentParser(prog="benchmarks.replica_cost", description=__doc__.partition("\n")[0])
    parser.add_argument("rows", nargs="?", type=int, default=ROWS, help="rows in the snapshot")
    asyncio.run(run(parser.parse_args().rows))


if __name__ == "__main__":
    main()
