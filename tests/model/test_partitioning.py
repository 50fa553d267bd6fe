"""Keys and where they live. The hashes here may never change: every entity ever stored lives where they say."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from styx import ConfigurationError, Operator
from styx.errors import BadKey
from styx.model import partitioning
from styx.model.limits import KEY_BYTES_MAX
from styx.model.partitioning import Key, KeyType, partition_function, stable_hash
from tests.plain_form import plain_form


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("", 81022053),
        ("alice", 431975076),
        ("account-1", 679536115),
        ("ééé", 2932871185),
        (0, 3523407757),
        (1, 2768625435),
        (-1, 4278190080),
        (2**63 - 1, 2519358872),
        (-(2**63), 2562256008),
        ((1, 2), 4140033505),
        ((1, "a"), 3127263330),
        (("w", 7, 3), 581266709),
    ],
)
def test_golden_hashes(key: Key, expected: int) -> None:
    assert stable_hash(key) == expected


def test_golden_partitions() -> None:
    accounts = Operator("account", n_partitions=4)
    assert [accounts.partition_of(f"account-{n}", 16) for n in range(8)] == [1, 3, 1, 3, 0, 2, 0, 2]
    orders = Operator("order", key_type=(int, int), partition_key=lambda key: key[0])
    assert [orders.partition_of((n, 9), 16) for n in range(8)] == [13, 11, 1, 7, 4, 2, 8, 14]


def test_a_partition_key_keeps_keys_together() -> None:
    hash_of = partition_function(lambda key: key[0])
    assert hash_of((7, 1)) == hash_of((7, 2)) == stable_hash(7)
    assert partition_function(None)((7, 1)) == stable_hash((7, 1))


def test_partitions_follow_the_slots_unless_declared() -> None:
    assert {Operator("o").partition_of(f"k{n}", 3) for n in range(100)} == {0, 1, 2}
    assert {Operator("o", n_partitions=2).partition_of(f"k{n}", 3) for n in range(100)} == {0, 1}


@plain_form
def test_a_partition_key_runs_once_for_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """So it does not run when rows are committed: whoever calls the entity has asked for its partition before."""
    asked: list[str] = []

    def first_letter(key: str) -> str:
        asked.append(key)
        return key[0]

    operator = Operator("order", partition_key=first_letter)
    asked.clear()  # of the keys with which a declaration is tried
    for _ in range(3):
        assert operator.partition_of("ab", 64) == operator.partition_of("ac", 64)
        assert operator.key_space.partition_of_flat(("ab",), 64) == operator.partition_of("ab", 64)
    assert asked == ["ab", "ac"]
    monkeypatch.setattr(partitioning, "HASHES_KEPT_MAX", 2)
    for key in ("b", "c", "ab", "ac"):
        operator.partition_of(key, 64)
    assert asked == ["ab", "ac", "b", "c"], "those before are kept, too"
    for key in ("d", "e", "ab"):
        operator.partition_of(key, 64)
    assert asked[4:] == ["d", "e", "ab"]


def test_a_partition_key_that_fails_is_the_requests_fault() -> None:
    operator = Operator("order", partition_key=lambda key: key[9])
    with pytest.raises(BadKey, match="partition_key of operator 'order' failed for 'short'"):
        operator.partition_of("short", 4)


# Key types -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declared", "key", "held"),
    [
        (str, "a", "a"),
        (str, "", ""),
        (str, "é", "é"),
        (str, "a" * KEY_BYTES_MAX, "a" * KEY_BYTES_MAX),
        (int, 5, 5),
        (int, -(2**63), -(2**63)),
        (int, 2**63 - 1, 2**63 - 1),
        ((int, str), (1, "a"), (1, "a")),
        ((int, str), [1, "a"], (1, "a")),
        (tuple[int, int], (1, 2), (1, 2)),
        ((int, int), (2**62, -(2**63)), (2**62, -(2**63))),
        ((int, str), (1, "é" * 1_000), (1, "é" * 1_000)),
        ((str,), ("a",), ("a",)),
    ],
)
def test_good_keys(declared: Any, key: Any, held: Key) -> None:
    assert KeyType(declared).check(key, "o") == held
    assert Operator("o", key_type=declared).check_key(key) == held


@pytest.mark.parametrize(
    ("declared", "key", "words"),
    [
        (str, None, "has keys of type str, got None of type NoneType"),
        (str, 5, "has keys of type str, got 5 of type int"),
        (str, b"a", "got b'a' of type bytes"),
        (str, "a" * (KEY_BYTES_MAX + 1), "2049 bytes; the limit is 2048"),
        (str, "é" * 1_025, "2050 bytes; the limit is 2048"),
        (str, "\ud800", "not valid Unicode"),
        (int, "5", "has keys of type int, got '5' of type str"),
        (int, True, "got True of type bool"),
        (int, 5.0, "got 5.0 of type float"),
        (int, 2**63, "must fit 64 bits"),
        ((int, str), (True, "a"), r"has keys of type \(int, str\), got \(True, 'a'\)"),
        ((int, str), (1, "a" * (KEY_BYTES_MAX + 1)), "2049 bytes; the limit is 2048"),
        ((int, str), (1, "\ud800"), "not valid Unicode"),
        ((int, str), (1,), r"has keys of type \(int, str\), got \(1,\)"),
        ((int, str), ("a", 1), r"has keys of type \(int, str\)"),
        ((int, str), (True, "a"), r"has keys of type \(int, str\)"),
        ((int, str), (2**63, "a"), "must fit 64 bits"),
        ((int, str), {1: "a"}, "of type dict"),
    ],
)
def test_bad_keys_are_named(declared: Any, key: Any, words: str) -> None:
    with pytest.raises(BadKey, match=words):
        KeyType(declared).check(key, "o")
    with pytest.raises(BadKey, match=words):
        Operator("o", key_type=declared).check_key(key)


@pytest.mark.parametrize(
    "declared", [float, bytes, None, (), (int, float), "str", list[int], dict[str, int], int | str]
)
def test_other_key_types_are_refused(declared: Any) -> None:
    with pytest.raises(ConfigurationError, match="key_type must be str, int or a tuple of them"):
        KeyType(declared)


# Keys as text --------------------------------------------------------------------------------------------------


@given(st.integers(-(2**63), 2**63 - 1))
def test_an_int_is_its_decimal_form(number: int) -> None:
    assert KeyType(int).parse(str(number), "o") == number


def test_texts_of_keys() -> None:
    assert KeyType(str).parse("[1]", "o") == "[1]"
    assert KeyType((int, str)).parse('[1, "a"]', "o") == (1, "a")


@pytest.mark.parametrize("text", ["", "1.0", "1_000", " 1", "٣", "0x1", "1e3", "--1", "99999999999999999999"])
def test_a_typing_error_in_a_number_is_noticed(text: str) -> None:
    with pytest.raises(BadKey, match=r"must be a decimal number|must fit 64 bits"):
        KeyType(int).parse(text, "o")


@pytest.mark.parametrize("text", ["", "1,2", "[1", "[1, 2]", '{"a": 1}', "[" * 10_000])
def test_a_typing_error_in_a_tuple_is_noticed(text: str) -> None:
    with pytest.raises(BadKey):
        KeyType((int, str)).parse(text, "o")
