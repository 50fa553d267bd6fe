"""`python -m benchmarks.micro.agenda [--entries N]`: an agenda of many calls in one process. Its memory, a snapshot of
it, a start from that, and its order made anew; then as many calls that are due at once, with requests beside them.

The first figures are without log and network; the calls are made by an engine that keeps its log in a directory. Each
figure is of a process of its own, but for those of the calls.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from datetime import timedelta
from typing import Any, Final, NamedTuple

from benchmarks.micro.many_rows import Measured, _measured, alone
from benchmarks.micro.rows import N_SLOTS
from styx import App, Context, Operator, embedded
from styx.model.agenda import AgendaEntry, agenda_of, encode_entry
from styx.model.serial_id import entry_id
from styx.native.form import FORM, describe
from styx.protocol.manifest import Manifest, SlotManifest
from styx.snapshot.load import read_states
from styx.snapshot.part import store_slots
from styx.state.slot_state import SlotState
from styx.store.directory import DirectoryStore
from styx.worker.events import SlotContent, StoreSlots

EACH: Final = 100
"""Calls that one request gives."""
DELAY: Final = timedelta(days=1)
PAUSE_SECONDS: Final = 0.005
"""Between requests of the client that is served meanwhile."""

giver = Operator("giver", key_type=int)
book = Operator("book", key_type=int)


@giver.register
async def give(ctx: Context, count: int) -> None:
    """Gives calls that are all due a day later."""
    for number in range(count):
        ctx.after(DELAY, book, write, ctx.key * count + number)


@book.register
async def write(ctx: Context) -> None:
    """Counts how often it is called."""
    await ctx.put(await ctx.get(0) + 1)


@book.register
async def ask(ctx: Context) -> None:
    """A request of a client, for an entity of its own."""
    await ctx.put(0)


@book.register(read_only=True)
async def times(ctx: Context) -> int:
    """How often it was called."""
    return await ctx.get(0)  # type: ignore[no-any-return]


@giver.register(read_only=True)
async def wrong(ctx: Context, count: int) -> int:
    """How many of the calls that it gave were not made once."""
    made = [await ctx.call(book, times, ctx.key * count + number) for number in range(count)]
    return sum(number != 1 for number in made)


app = App("agenda", [giver, book])


class Made(NamedTuple):
    """`seconds` from when the calls were due until all of them were made. Requests of a client beside them, and the
    median and the longest of their times, in seconds; `quiet` is the median before. `wrong` calls were not made once.
    """

    seconds: float
    requests: int
    median: float
    longest: float
    quiet: float
    wrong: int


def _entries(count: int) -> dict[int, dict[Any, bytes]]:
    """Entries of an agenda, by slot."""
    tables: dict[int, dict[Any, bytes]] = {slot: {} for slot in range(N_SLOTS)}
    for number in range(count):
        key, its_id = number // EACH, entry_id(number // 250, False, number, b"", 1)
        entry = AgendaEntry(10**15 + number * 7_919 % count, its_id, 10**15, "book", "write", number, b"\x90", 5, 10**6)
        tables[giver.slot_of(key, N_SLOTS)][key, its_id] = encode_entry(entry)
    return tables


def make(count: int, directory: str) -> tuple[Measured, Measured, Measured, int, Manifest]:
    """Commits the entries, makes their order anew, and stores a snapshot: of each the cost; its bytes and manifest."""
    tables = _entries(count)
    states = {slot: SlotState() for slot in tables}

    def commit() -> None:
        for slot, entries in tables.items():
            table = states[slot].table(agenda_of("giver"))
            for key, data in entries.items():
                table.write(0, key, data)

    def order() -> None:
        for state in states.values():
            state.as_stored()

    def store() -> list[SlotManifest]:
        contents = [SlotContent(slot, state.copied(), True, 0, []) for slot, state in states.items()]
        store_in = DirectoryStore(directory)
        parts = store_slots(StoreSlots(0, 0, 0, contents), 0, {slot: {} for slot in states}, {}, store_in)
        return [SlotManifest(part, [part.stored] if part.stored is not None else []) for part in parts]

    committed, _ = _measured(commit)
    ordered, _ = _measured(order)
    stored, slots = _measured(store)
    size = sum(ref.size for slot in slots for ref in slot.objects)
    return committed, ordered, stored, size, Manifest(0, 0, 0, slots)


def start(directory: str, manifest: Manifest) -> tuple[Measured, Measured]:
    """Loads the snapshot, and makes the order of what it holds: of both the cost."""
    loaded, states = _measured(lambda: read_states(manifest, range(N_SLOTS), DirectoryStore(directory)))
    return loaded, _measured(lambda: [state.as_stored() for state in states.values()])[0]


def deliver(count: int, directory: str) -> Made:
    """Lets an embedded engine make this many calls, all of which are due at once."""
    return asyncio.run(_deliver(count, directory))


async def _deliver(count: int, directory: str) -> Made:
    async with embedded(app, directory) as client:

        async def asks(times: list[float]) -> None:
            while True:
                begun = time.perf_counter()
                await client.call(book, -1 - len(times) % 64, ask)
                times.append(time.perf_counter() - begun)
                await asyncio.sleep(PAUSE_SECONDS)

        async def while_asked(work: Any) -> list[float]:
            times: list[float] = []
            asking = asyncio.create_task(asks(times))
            await work
            asking.cancel()
            await asyncio.wait([asking])
            return times

        for first in range(0, count // EACH, 100):
            last = min(first + 100, count // EACH)
            await asyncio.gather(*[client.call(giver, number, give, EACH) for number in range(first, last)])
        engine = client.engine
        quiet = await while_asked(asyncio.sleep(0.5))
        begun = time.perf_counter()
        await engine.set_forward(DELAY // timedelta(microseconds=1))

        async def until_made() -> None:
            while engine.worker.given_for_later:  # noqa: ASYNC110 - an engine's state tells nobody
                await asyncio.sleep(PAUSE_SECONDS)

        busy = await while_asked(until_made())
        seconds = time.perf_counter() - begun
        wrongs = await asyncio.gather(*[client.call(giver, n, wrong, EACH) for n in range(count // EACH)])
        return Made(
            seconds, len(busy), statistics.median(busy or [0]), max(busy or [0]), statistics.median(quiet), sum(wrongs)
        )


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.micro.agenda", description=__doc__)
    parser.add_argument("--entries", type=int, default=1_000_000, metavar="N")
    parser.add_argument("--due", type=int, default=100_000, metavar="N", help="calls that are due at once")
    options = parser.parse_args()
    count: int = options.entries
    print(f"{describe(FORM)}; {count:,} entries", flush=True)
    with tempfile.TemporaryDirectory() as directory:
        committed, ordered, stored, size, manifest = alone(make, count, directory)
        print(
            f"committed {committed.seconds / count * 1e6:.2f} µs and {committed.memory / count:.0f} bytes an entry; "
            f"ordered anew {ordered.seconds:.2f} s; snapshot {stored.seconds:.2f} s, {size / count:.1f} bytes an entry",
            flush=True,
        )
        loaded, order = alone(start, directory, manifest)
        print(
            f"start {loaded.seconds:.2f} s, its order {order.seconds:.2f} s; "
            f"{(loaded.memory + order.memory) / count:.0f} bytes an entry",
            flush=True,
        )
    with tempfile.TemporaryDirectory() as directory:
        made = alone(deliver, options.due, directory)
        print(
            f"{options.due:,} calls due at once: made in {made.seconds:.1f} s, {options.due / made.seconds:,.0f} a "
            f"second, {made.wrong} not once; {made.requests} requests beside them, median {made.median * 1e3:.1f} ms "
            f"(before {made.quiet * 1e3:.1f}), longest {made.longest * 1e3:.0f} ms",
            flush=True,
        )


if __name__ == "__main__":
    main()
