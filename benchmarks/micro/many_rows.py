"""`python -m benchmarks.micro.many_rows [--rows N]`: many rows in one process. Their memory and that of their indexes,
a snapshot of them, a start from it with and without indexes, and a load by a client.

No log and no network, but for the load, whose engine keeps both in a directory. Each figure is of a process of its own.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from benchmarks.micro.rows import N_SLOTS
from styx import App, Context, Index, Operator
from styx.client.embedded import embedded_sync
from styx.native.form import FORM, describe
from styx.protocol.manifest import Manifest, SlotManifest
from styx.relational.table import Table
from styx.snapshot.load import read_states
from styx.snapshot.part import store_slots
from styx.state.slot_state import SlotState
from styx.store.directory import DirectoryStore
from styx.worker.events import SlotContent, StoreSlots

ROWS_EACH: Final = 100
"""Of one entity."""


class Item(msgspec.Struct, array_like=True):
    """Three small numbers."""

    product: int
    quantity: int
    price: int


_INDEXES: Final = (
    Index("by_price", order="price"),
    Index("by_quantity", equal="quantity"),
    Index("by_quantity_price", equal="quantity", order="price"),
)
cart = Operator("cart", key_type=int)
TABLES: Final[dict[str, Table]] = {
    "no index": cart.table("plain", Item, key="product"),
    "two indexes": cart.table("two", Item, key="product", indexes=_INDEXES[:2]),
    "three indexes": cart.table("three", Item, key="product", indexes=_INDEXES),
    "a partition-wide index": cart.table(
        "wide", Item, key="product", indexes=[Index("by_price", order="price", scope="partition")]
    ),
}
ORDERED: Final = ("two indexes", "three indexes")
"""Those whose index by price is of each entity."""


@cart.register(read_only=True)
async def cheapest(ctx: Context, name: str) -> Item | None:
    """The cheapest item of a cart in one of the tables, by its index if it has one for that."""
    table: Any = TABLES[name]
    found: list[Item] = await ctx.rows(table).select(first=1, by="by_price" if name in ORDERED else None)
    return found[0] if found else None


app = App("many_rows", operators=[cart])


class Measured(NamedTuple):
    """Seconds of processor time, and bytes of memory that it added to the process."""

    seconds: float
    memory: int


def _measured(work: Callable[[], Any]) -> tuple[Measured, Any]:
    gc.collect()
    before, begun = memory(), time.process_time()
    result = work()
    seconds = time.process_time() - begun
    gc.collect()
    return Measured(seconds, memory() - before), result


def memory() -> int:
    """The bytes that this process has in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def items(rows: int) -> Iterator[tuple[int, Item]]:
    """Pairs of entity and row. The entities take turns, as if rows had come to them over time."""
    for number in range(rows):
        entity = number % max(1, rows // ROWS_EACH)
        yield entity, Item(number, number % 7, number * 7_919 % 10_007)


# What each process does ------------------------------------------------------------------------------------


def make(name: str, rows: int, directory: str) -> tuple[Measured, Measured, int, Manifest]:
    """Commits the rows, and stores a snapshot: of both the cost, the snapshot's bytes, and its manifest."""
    table = TABLES[name]

    def commit() -> dict[int, SlotState]:
        states = {slot: SlotState() for slot in range(N_SLOTS)}
        for state in states.values():
            state.declare({table.full_name: table.indexes}, N_SLOTS)
        for entity, item in items(rows):
            here = states[cart.slot_of(entity, N_SLOTS)].table(table.full_name)
            here.write(0, (entity, *table.parts_of(item)), table.row_type.encode(item))
        for state in states.values():
            state.take_delta()
            state.delta_stored()
        return states

    store_in = DirectoryStore(directory)

    def store() -> list[SlotManifest]:
        contents = [SlotContent(slot, state.copied(), True, 0, []) for slot, state in states.items()]
        parts = store_slots(StoreSlots(0, 0, 0, contents), 0, {slot: {} for slot in states}, {}, store_in)
        return [SlotManifest(part, [part.stored] if part.stored is not None else []) for part in parts]

    committed, states = _measured(commit)
    stored, slots = _measured(store)
    size = sum(ref.size for slot in slots for ref in slot.objects)
    return committed, stored, size, Manifest(0, 0, 0, slots)


def start(name: str, directory: str, manifest: Manifest, declared: bool) -> tuple[Measured, Measured]:
    """Loads the snapshot as a start does, then asks each entity for all its indexes: of both the cost."""
    table = TABLES[name]
    indexes = table.indexes if declared else ()

    def load() -> dict[int, SlotState]:
        states = read_states(manifest, range(N_SLOTS), DirectoryStore(directory))
        if declared:
            for state in states.values():
                state.declare({table.full_name: indexes}, N_SLOTS)
                for _ in state.fill_indexes():
                    pass
        return states

    def ask() -> None:
        for state in states.values():
            rows = state.table(table.full_name)
            for entity in {key[:1] for key in rows.at(0)}:
                for index in indexes:
                    if index.of_entities and rows.index(0, index, entity) is None:
                        rows.make_index(index, entity, N_SLOTS)

    loaded, states = _measured(load)
    asked, _ = _measured(ask)
    return loaded, asked


def load_by_client(name: str, rows: int, directory: str) -> float:
    """Seconds of the clock for `client.load_rows` into an engine that keeps its log in a directory."""
    with embedded_sync(app, directory) as client:
        begun = time.perf_counter()
        client.load_rows(TABLES[name], items(rows))
        return time.perf_counter() - begun


# The command -----------------------------------------------------------------------------------------------


def alone(function: Callable[..., Any], *arguments: Any) -> Any:
    """Runs it in a new process."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.micro.many_rows", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, metavar="N")
    parser.add_argument("--load", type=int, default=100_000, metavar="N", help="rows that the client loads")
    parser.add_argument("--only", choices=TABLES, help="one of the tables alone")
    options = parser.parse_args()
    rows: int = options.rows
    print(f"{describe(FORM)}; {rows:,} rows in {max(1, rows // ROWS_EACH):,} entities", flush=True)
    for name in [options.only] if options.only else TABLES:
        with tempfile.TemporaryDirectory() as directory:
            committed, stored, size, manifest = alone(make, name, rows, directory)
            print(
                f"{name}: committed {committed.seconds / rows * 1e6:.2f} µs and {committed.memory / rows:.0f} bytes a "
                f"row; snapshot {stored.seconds:.2f} s, {size / rows:.1f} bytes a row",
                flush=True,
            )
            for declared in (False, True):
                loaded, asked = alone(start, name, directory, manifest, declared)
                told = f"start {loaded.seconds:.2f} s, {loaded.memory / rows:.0f} bytes a row"
                if declared:
                    told += f"; all indexes asked for {asked.seconds:.2f} s, {asked.memory / rows:.0f} bytes a row"
                print(f"  {'with' if declared else 'without'} indexes: {told}", flush=True)
    with tempfile.TemporaryDirectory() as directory:
        seconds = alone(load_by_client, "two indexes", options.load, directory)
        print(f"client.load_rows with two indexes: {options.load / seconds:,.0f} rows a second", flush=True)


if __name__ == "__main__":
    main()
