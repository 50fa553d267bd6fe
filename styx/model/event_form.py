"""The values of one event as bytes, and what is refused: each is checked when it is emitted, so that every reader gets
what the function gave.
"""

from __future__ import annotations

from typing import Any, Final

from styx.errors import UnsupportedValue, ValueTooLarge
from styx.values.codec import TypedState, shown
from styx.values.json_form import JsonForm

EVENT_BYTES_MAX: Final = 512 * 1024
"""The JSON of one event, so that its record fits every log."""

_JSON_TIMES: Final = 6
"""How many times as many bytes JSON has at most as msgpack: a control character of a text is six characters."""


class EventForm:
    """Of the values, of `declared`, of the event `name`. Raises what msgspec raises for what is no type."""

    __slots__ = ("_decode_json", "_encode_json", "_is_certain", "_name", "_typed")

    def __init__(self, name: str, declared: Any) -> None:
        form = JsonForm(declared)
        self._name = name
        self._typed = TypedState(declared, f"type of event {name!r},")
        self._is_certain: bool = form.certain
        self._encode_json: Any = form.encode
        self._decode_json: Any = form.decode

    def encode(self, value: Any) -> bytes:
        """As `Event.encode`."""
        try:
            payload = self._typed.encode(value)
        except UnsupportedValue as error:
            raise UnsupportedValue(f"event {self._name!r}{error.path}: {error}") from None
        if not self._is_certain:
            self._check_json(payload, value)
        if _JSON_TIMES * len(payload) > EVENT_BYTES_MAX:
            size = len(self.to_json(payload))
            if size > EVENT_BYTES_MAX:
                raise ValueTooLarge(
                    f"event {self._name!r} has {size} bytes as JSON; the limit is {EVENT_BYTES_MAX}: emit what it is "
                    "about, and let readers ask for the rest"
                )
        return payload

    def _check_json(self, payload: bytes, value: Any) -> None:
        """Refuses what JSON would change, such as a float that is no number."""
        try:
            same = self._typed.encode(self.from_json(self.to_json(payload))) == payload
        except (UnsupportedValue, ValueError, TypeError, RecursionError):  # msgspec's are ValueErrors
            same = False
        if not same:
            raise UnsupportedValue(
                f"event {self._name!r}: {shown(value)} would not come back from JSON, in which its readers get it"
            )

    def decode(self, payload: bytes) -> Any:
        """As `Event.decode`."""
        return self._typed.decode(payload)

    def to_json(self, payload: bytes) -> bytes:
        """As `Event.to_json`."""
        encode = self._encode_json
        text: bytes = encode(self._typed.decode(payload))
        return text

    def from_json(self, text: bytes) -> Any:
        """As `Event.from_json`."""
        decode = self._decode_json
        return decode(text)
