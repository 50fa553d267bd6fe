"""Unique ids are injective and sort by transaction, call path and number: exactly, since nothing is hashed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from styx import App, Context, Operator
from styx.model.limits import CALLS_PER_FUNCTION_MAX, TID_MAX, Limits
from styx.model.unique_id import CHARS_MIN, unique_id
from styx.testing import embedded_cluster

EDGES = [0, 1, 6, 7, 8, 70, 71, 72, 2_118, 2_119, 2_120, 65_000]
"""Around which a code gets longer."""
tids = st.integers(1, TID_MAX)
steps = st.sampled_from(EDGES) | st.integers(0, CALLS_PER_FUNCTION_MAX)
numbers = st.sampled_from([*EDGES, 133_191, 133_192]) | st.integers(0, 2**40)
paths = st.lists(steps, max_size=12).map(lambda path: b"".join(step.to_bytes(2, "big") for step in path))
parts = st.tuples(tids, paths, numbers)


@given(st.lists(parts, max_size=30), st.lists(parts, max_size=3), paths, numbers)
def test_ids_are_equal_only_if_all_parts_are_and_sort_as_they_do(
    made: list[tuple[int, bytes, int]], near: list[tuple[int, bytes, int]], path: bytes, number: int
) -> None:
    # Others that differ in one part only, or begin alike.
    made += [(tid, at + path, n) for tid, at, n in near] + [(tid, at, number) for tid, at, _ in near] + near
    ids = {unique_id(*each): each for each in made}
    assert len(ids) == len(set(made))
    assert [ids[text] for text in sorted(ids)] == sorted(set(made))


@given(parts)
def test_the_form(made: tuple[int, bytes, int]) -> None:
    text = unique_id(*made)
    assert len(text) >= CHARS_MIN
    assert set(text) <= set("0123456789ABCDEFGHJKMNPQRSTVWXYZ")


@given(tids, st.lists(st.integers(0, 70), max_size=5), st.integers(0, 2_119))
def test_usual_ones_have_26_characters(tid: int, path: list[int], number: int) -> None:
    """Five calls below calls, each among the first 71 of its function, and two thousand ids in one function."""
    assert len(unique_id(tid, b"".join(step.to_bytes(2, "big") for step in path), number)) == 26


def test_the_longest_ones_are_long() -> None:
    depth = Limits().call_depth_max
    deep = [unique_id(1, (65_000).to_bytes(2, "big") * depth, n) for n in range(2)]
    assert deep[0] < deep[1]
    assert len(deep[0]) < 2_200


note = Operator("note")


@note.register
async def ids(ctx: Context, deep: int) -> list[str]:
    found = [ctx.unique_id(), ctx.unique_id()]
    await ctx.put((await ctx.get() or []) + found)
    if deep:
        found += await ctx.call(note, ids, f"{ctx.key}{deep}", (deep - 1,))
        ctx.call_async(note, ids, f"{ctx.key}-{deep}", (deep - 1,))
    return [*found, ctx.unique_id()]


@pytest.mark.anyio
async def test_each_run_of_a_transaction_makes_the_same_ones_and_no_other_makes_them() -> None:
    """Contended, so that most run twice or are carried; the history check compares with a run of their own."""
    async with embedded_cluster(App("notes", [note])) as cluster:
        replies = [cluster.submit("note", f"n{number % 3}", "ids", 3) for number in range(60)]
        given = [text for reply in replies for text in (await reply).unwrap()]
        stored = [text for each in cluster.state().values() for text in each]
        assert len(given) == 60 * 12
        assert len(set(given)) == len(given)
        assert len(set(stored)) == len(stored)
    assert cluster.report is not None


@pytest.mark.anyio
async def test_ids_of_later_requests_are_greater() -> None:
    async with embedded_cluster(App("notes", [note])) as cluster:
        made = [(await cluster.call("note", f"n{number}", "ids", 0))[0] for number in range(20)]
    assert made == sorted(made)
