"""The place of a statement in the serial order of its transaction, as bytes that sort so.

The chains of a transaction run one after the other: first a chain, then the asynchronous calls that it has made, in
call-path order and depth first. Within a chain, a synchronous call runs between the statements before and behind it. So
a call path alone is no such place: a function goes on behind the synchronous calls that it has made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from styx.model.context import Context

_STEP_BYTES: Final = 2
"""Of a call path (`CALLS_PER_FUNCTION_MAX`)."""
_END: Final = bytes(_STEP_BYTES)
"""Sorts before every step."""
_DIGITS: Final = "__abcd"
"""By the number of digits, the letter before a step that has several: up to `CALLS_PER_FUNCTION_MAX`."""
PLACE_LETTERS: Final = "0-9a-d"
"""What a place as text is made of, for a regular expression."""


def serial_place(context: Context) -> bytes:
    """The place of what the context's function does now, behind its calls so far and before its next one.

    Two statements of one function without a call between them have the same place.
    """
    start, path = context._chain_id, context._path
    calls = len(context._calls) if context._calls is not None else 0
    if not path:  # the root's function, as usual
        return _AT_ROOT[calls] if calls < len(_AT_ROOT) else _END + _step(calls) + _END
    return _steps(start) + _END + _steps(path[len(start) :]) + _step(calls) + _END


def place_text(place: bytes) -> str:
    """A place as letters and digits that sort as places do, in every alphabet: an end is `0`, a step its number, behind
    a letter that says how many digits it has if it has several.
    """
    texts = []
    for at in range(0, len(place), _STEP_BYTES):
        step = 256 * place[at] + place[at + 1]
        texts.append(_USUAL_TEXTS[step] if step < len(_USUAL_TEXTS) else _text(step))
    return "".join(texts)


def _text(step: int) -> str:
    digits = str(step)
    return digits if step < 10 else _DIGITS[len(digits)] + digits


def _steps(path: bytes) -> bytes:
    return b"".join(
        _step(int.from_bytes(path[at : at + _STEP_BYTES], "big")) for at in range(0, len(path), _STEP_BYTES)
    )


def _step(index: int) -> bytes:
    return (index + 1).to_bytes(_STEP_BYTES, "big")  # a function makes fewer calls than a step can count


_USUAL_TEXTS: Final = tuple([_text(step) for step in range(100)])
_AT_ROOT: Final = tuple([_END + _step(calls) + _END for calls in range(100)])
"""The places of a root's function, by its calls so far."""
