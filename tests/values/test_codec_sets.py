"""Sets have another order in every process; what is encoded of them must not, or a replay would differ."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import msgspec
import pytest

from styx.values.codec import TypedState, encode_any, holds_sets


class Tagged(msgspec.Struct):
    children: list[Tagged]
    tags: frozenset[str]


class Plain(msgspec.Struct):
    children: list[Plain]
    counts: dict[str, int]


@pytest.mark.parametrize("declared", [set[str], list[frozenset[int]], dict[str, set[int]], int | set[str], Tagged])
def test_a_set_is_found_wherever_it_is(declared: Any) -> None:
    assert holds_sets(declared)


@pytest.mark.parametrize("declared", [Any, None, int, dict[str, int], tuple[int, ...], Plain, object])
def test_no_set_where_there_is_none(declared: Any) -> None:
    assert not holds_sets(declared)


def test_state_with_sets_is_encoded_in_sorted_order() -> None:
    data = TypedState(set[str]).encode({"pear", "apple", "fig"})
    assert msgspec.msgpack.decode(data) == ["apple", "fig", "pear"]


def test_without_a_set_a_dictionary_keeps_its_order() -> None:
    assert list(msgspec.msgpack.decode(TypedState(dict[str, int]).encode({"b": 1, "a": 2}))) == ["b", "a"]
    assert list(msgspec.msgpack.decode(encode_any({"b": 1, "a": 2}, "it"))) == ["b", "a"]


@pytest.mark.slow
def test_replies_and_state_do_not_depend_on_the_hash_seed() -> None:
    script = """
import asyncio, styx
bag = styx.Operator("bag", state_type=set[str])

@bag.register
async def add(ctx, words: set[str]) -> set[str]:
    await ctx.put((await ctx.get(set())) | words)
    return words

@bag.register
async def both(ctx, words: list[str]):
    await ctx.call(bag, add, "other", (set(words),))
    return set(words)

async def main():
    async with styx.embedded(styx.App("bags", [bag])) as client:
        words = ["pear", "apple", "fig", "plum", "lime"]
        print(await client.call("bag", "one", "add", words), await client.call("bag", "one", "both", words))
        print(sorted(client.engine.encoded_state().items()))

asyncio.run(main())
"""
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("0", "1", "2", "3")
    }
    assert len(outputs) == 1
