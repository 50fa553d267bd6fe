"""Words of a command line as JSON arguments: `10`, `'{"a": 1}'`, `true`, and bare words as text.

The server decides whether an argument fits the function.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from styx.cli.exit_codes import usage_error
from styx.values.codec import shown

_OPENS_JSON = ("{", "[", '"')
_encode = msgspec.json.Encoder().encode


def json_arguments(words: Sequence[str]) -> bytes:
    """The JSON array of the words: each one JSON if it is that, else text.

    Raises `CommandFailed` for a word that begins as JSON and is not: half an object is a slip, never meant as text.
    """
    return b"[" + b",".join(_json(number, word) for number, word in enumerate(words, 1)) + b"]"


def _json(number: int, word: str) -> bytes:
    try:
        data = word.encode()
    except UnicodeEncodeError:
        raise usage_error(f"argument {number} is not valid Unicode: {shown(word)}") from None
    try:
        msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        if word.lstrip().startswith(_OPENS_JSON):
            raise usage_error(
                f"argument {number} begins like JSON and is not: {shown(word)}: {error}\n"
                'Put it in single quotes, so that the shell leaves its double quotes alone: \'{"name": "tea"}\''
            ) from None
        return _encode(word)
    return data
