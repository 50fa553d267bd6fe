"""Prefixes and cursors of keys, as text: what a range has, and where to begin to look for it."""

from __future__ import annotations

from typing import Any

import pytest

from styx.errors import BadKey
from styx.model.key_range import KeyRange, key_text, of_rows, of_values
from styx.model.partitioning import KeyType

TEXTS = sorted(["", "A", "a", "a b", "aa", "ab", "b", "é", "日本", "😀", "a\U0010ffff", "a\x00"])
PAIRS = sorted((text, number) for text in ("", "a", "aa", "b", "é") for number in (-2, 0, 10))
ROWS = sorted((text, number, other) for text, number in PAIRS for other in ("", "x", "xy"))


def walked(keys: list[Any], wanted: KeyRange) -> list[Any]:
    """As an index walks it: from the first key on, to the first that does not begin so."""
    found = []
    for key in keys:
        if wanted.first is not None and key < wanted.first:
            continue
        if key == wanted.behind:
            continue
        if not wanted.begins(key):
            break
        found.append(key)
    return found


@pytest.mark.parametrize("prefix", [*TEXTS, "x", "a\U0010ffff\U0010ffff"])
@pytest.mark.parametrize("after", [None, *TEXTS, "aaa"])
def test_texts(prefix: str, after: str | None) -> None:
    wanted = of_values(KeyType(str), "account", prefix, after)
    expected = [key for key in TEXTS if key.startswith(prefix) and (after is None or key > after)]
    assert walked(TEXTS, wanted) == expected == list(filter(wanted.has, TEXTS))


@pytest.mark.parametrize("prefix", [(), ("",), ("a",), ("c",), ("a", 0), ("a", 3), ("b", 10)])
@pytest.mark.parametrize("after", [None, *PAIRS, ("zz", 0)])
def test_keys_of_several_parts(prefix: tuple[Any, ...], after: Any) -> None:
    text = key_text(list(prefix)) if prefix else ""
    wanted = of_values(KeyType((str, int)), "seat", text, None if after is None else key_text(after))
    assert walked(PAIRS, wanted) == [key for key in PAIRS if begins(key, prefix) and (after is None or key > after)]


@pytest.mark.parametrize("prefix", [(), ("a",), ("a", 0), ("a", 0, "x"), ("a", 0, "xyz")])
@pytest.mark.parametrize("after", [None, ("a",), ("a", 0), ("a", 0, "x"), ("é", 10, "xy")])
@pytest.mark.parametrize("kinds", [None, (str, int, str)])
def test_rows_and_cursors_with_fewer_parts(prefix: Any, after: Any, kinds: Any) -> None:
    text = key_text(list(prefix)) if prefix else ""
    wanted = of_rows(kinds, "cart/items", text, None if after is None else key_text(after))
    assert walked(ROWS, wanted) == [key for key in ROWS if begins(key, prefix) and (after is None or key > after)]


def begins(key: tuple[Any, ...], prefix: tuple[Any, ...]) -> bool:
    if not prefix:
        return True
    *first, last = prefix
    part = key[len(first)]
    return key[: len(first)] == tuple(first) and (part.startswith(last) if type(last) is str else part == last)


@pytest.mark.parametrize(
    "text", ["a", "{}", "[]", "7", "[1.5]", "[null]", "[[1]]", "[", '["a"', '["\\ud800"]', "[" * 5_000]
)
def test_what_is_no_array_of_parts_is_refused(text: str) -> None:
    for prefix, after in ((text, None), ("", text)):
        with pytest.raises(BadKey, match="is a JSON array such as"):
            of_rows(None, "cart/items", prefix, after)


def test_parts_of_other_types_are_refused_where_the_types_are_known() -> None:
    for text in ("[1]", '["a","b"]', '["a",1,2]'):
        with pytest.raises(BadKey, match=r"have the parts \(str, int, str\)"):
            of_rows((str, int, str), "cart/items", text, None)
    with pytest.raises(BadKey, match="are numbers, which have no prefix"):
        of_values(KeyType(int), "counter", "1", None)
    with pytest.raises(BadKey):
        of_values(KeyType(int), "counter", "", "x")
