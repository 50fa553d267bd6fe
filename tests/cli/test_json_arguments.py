"""Words of a command line as JSON."""

import pytest

from styx.cli.exit_codes import USAGE, CommandFailed
from styx.cli.json_arguments import json_arguments


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "[]"),
        (["10", "-5", "1.5"], "[10,-5,1.5]"),
        (["true", "null", '"10"'], '[true,null,"10"]'),
        (["bob"], '["bob"]'),
        (["two words", 'with "quotes"', ""], '["two words","with \\"quotes\\"",""]'),
        (['{"name": "tea"}', "[1, 2]"], '[{"name": "tea"},[1, 2]]'),
        (["2026-01-02", "1-2", "0x10", "True", "NaN"], '["2026-01-02","1-2","0x10","True","NaN"]'),
        (["12345678901234567890123"], "[12345678901234567890123]"),
        (["Zoë"], '["Zoë"]'),
    ],
)
def test_json_where_it_is_json_and_text_elsewhere(words: list[str], expected: str) -> None:
    assert json_arguments(words).decode() == expected


@pytest.mark.parametrize("word", ['{"name": tea}', "{name: tea}", "[1, 2", '"tea', ' {"a"'])
def test_half_json_is_a_slip(word: str) -> None:
    with pytest.raises(CommandFailed, match="argument 2 begins like JSON") as raised:
        json_arguments(["1", word])
    assert raised.value.exit_code == USAGE


def test_not_unicode() -> None:
    with pytest.raises(CommandFailed, match="not valid Unicode"):
        json_arguments(["\udcff"])
