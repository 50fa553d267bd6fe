"""Random text has the characters and the lengths that are asked for, and last names are put together of syllables."""

from __future__ import annotations

import random
from collections import Counter
from string import ascii_letters, digits

import pytest

from benchmarks.tpcc.text import BLOCK, a_strings, last_name, n_strings, with_original, zip_code


def test_all_letters_and_digits_are_equally_likely() -> None:
    text = a_strings(random.Random(1))
    drawn = Counter(character for _ in range(1_000) for character in text.take(62))
    assert set(drawn) == set(ascii_letters + digits)
    assert min(drawn.values()) > 850
    assert max(drawn.values()) < 1_150


def test_all_digits_are_equally_likely() -> None:
    text = n_strings(random.Random(1))
    drawn = Counter(character for _ in range(1_000) for character in text.take(16))
    assert set(drawn) == set(digits)
    assert min(drawn.values()) > 1_450
    assert max(drawn.values()) < 1_750


def test_lengths_are_uniform_and_of_both_ends_too() -> None:
    text = a_strings(random.Random(1))
    lengths = Counter(len(text.between(14, 24)) for _ in range(5_500))
    assert set(lengths) == set(range(14, 25))
    assert min(lengths.values()) > 400


def test_no_character_is_used_twice() -> None:
    whole, parts = a_strings(random.Random(1)), a_strings(random.Random(1))
    expected = whole.take(400)
    assert "".join(parts.take(40) for _ in range(10)) == expected
    assert all(len(parts.take(500)) == 500 for _ in range(2 * BLOCK // 500))


def test_last_names_are_those_of_the_standard() -> None:
    assert last_name(0) == "BARBARBAR"
    assert last_name(371) == "PRICALLYOUGHT"
    assert last_name(999) == "EINGEINGEING"
    assert len({last_name(number) for number in range(1_000)}) == 1_000


def test_a_zip_code_is_four_digits_and_five_ones() -> None:
    code = zip_code(n_strings(random.Random(1)))
    assert code[:4].isdecimal()
    assert code[4:] == "11111"


@pytest.mark.parametrize("length", [8, 26, 50])
def test_original_is_anywhere_and_leaves_the_length(length: int) -> None:
    rng = random.Random(1)
    found = [with_original("x" * length, rng) for _ in range(2_000)]
    assert {data.index("ORIGINAL") for data in found} == set(range(length - 7))
    assert {len(data) for data in found} == {length}
