"""What rows cost that are held to rules: each load leaves the rows, and what views count of them, that its title
says.
"""

from __future__ import annotations

import pytest

from benchmarks.micro.orders import LINES
from benchmarks.micro.rows import ROWS, run_row
from styx.messages import decode_reply

COUNT = 3


@pytest.mark.parametrize(
    ("name", "left"),
    [
        ("order_placed", {"customer/orders": COUNT, "customer/lines": COUNT * LINES}),
        ("order_sent", {"customer/orders": COUNT, "customer/lines": COUNT * LINES}),
        (
            "entries_counted",
            {
                "seller/details": COUNT,
                "seller/entries": COUNT * LINES,
                "seller/<view board>": COUNT,
                "seller/<view by_product>": COUNT * LINES,
            },
        ),
        ("entries_archived", {}),
    ],
)
def test_a_load_leaves_its_rows(name: str, left: dict[str, int]) -> None:
    row = ROWS[name]
    engine = row.engine()
    replies = [decode_reply(data) for data in run_row(engine, row.routed(COUNT), COUNT)]
    assert [reply.error for reply in replies] == [None] * COUNT
    held: dict[str, int] = {}
    for slot in engine.worker.slots.values():
        for table, entries in slot.state.at(engine.worker.epoch).items():
            if entries:
                held[table] = held.get(table, 0) + len(entries)
    assert held == left
