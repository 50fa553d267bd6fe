"""The keys that a listing asks for: those that begin with a prefix, behind the last key of the page before. Both are
text, as a command line or a URL has them.

Keys are in order, texts by code point and numbers by size, and those with one prefix stand together. So a listing
begins at one place and ends at another, and its cursor is a key. The key of a row is its entity's, flat, and then the
primary key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from styx.errors import BadKey
from styx.model.partitioning import KeyType
from styx.values.codec import shown

_encode: Final = msgspec.json.Encoder().encode
_decode_parts: Final = msgspec.json.Decoder(list[str | int]).decode


class KeyRange(NamedTuple):
    """`start`: no key below it is in the range, None for the first one there is. `behind`: nor is this one or any below
    it. `begins`: whether a key begins with the prefix; behind a key from `start` on that does not, none does.
    """

    start: Any
    behind: Any
    begins: Callable[[Any], bool]

    @property
    def first(self) -> Any:
        """Where to begin to look, None at the first key there is."""
        if self.start is None or self.behind is None:
            return self.behind if self.start is None else self.start
        return max(self.start, self.behind)

    def has(self, key: Any) -> bool:
        """Whether it has the key."""
        return self.begins(key) and (self.behind is None or key > self.behind)


def of_values(key_type: KeyType, name: str, prefix: str, after: str | None) -> KeyRange:
    """Of the keys of the entities of `name`. The prefix of texts is a text; that of keys of several parts a JSON array
    of the first ones, of which the last may be the beginning of a text. Raises `BadKey`.
    """
    behind = None if after is None else key_type.parse(after, name)
    if not prefix:
        return KeyRange(None, behind, _any)
    if key_type.scalar is str:
        return KeyRange(prefix, behind, lambda key: bool(key.startswith(prefix)))
    if key_type.scalar is int:
        raise BadKey(f"keys of {name} are numbers, which have no prefix: leave it out")
    return _of_parts(key_type.parts, name, prefix, behind)


def of_rows(kinds: Sequence[type] | None, name: str, prefix: str, after: str | None) -> KeyRange:
    """Of the keys of rows of the table `name`, whose parts are of these kinds, str or int, if that is known; `after`
    may have fewer parts, and is before all keys that begin with it then. Raises `BadKey`.
    """
    behind = None if after is None else tuple(_array(kinds, name, after, "what a listing goes on behind"))
    return _of_parts(kinds, name, prefix, behind) if prefix else KeyRange(None, behind, _any)


def key_text(key: Any) -> str:
    """A key's text form, as `of_values` and `of_rows` take it."""
    return key if type(key) is str else _encode(key).decode()


def _any(key: Any) -> bool:
    return True


def _of_parts(kinds: Sequence[type] | None, name: str, prefix: str, behind: Any) -> KeyRange:
    *first, last = parts = _array(kinds, name, prefix, "a prefix")
    count = len(first)

    def begins(key: Any) -> bool:
        if len(key) <= count or list(key[:count]) != first:
            return False
        part = key[count]
        return part.startswith(last) if type(part) is str and type(last) is str else bool(part == last)

    return KeyRange(tuple(parts), behind, begins)


def _array(kinds: Sequence[type] | None, name: str, text: str, what: str) -> list[Any]:
    try:
        parts = _decode_parts(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        parts = []
    if not parts:
        raise BadKey(f'{what} of keys of {name} is a JSON array such as ["a"] or [1,2], got {shown(text)}')
    if kinds is not None and not all(type(part) is kind for part, kind in zip(parts, kinds, strict=False)):
        names = ", ".join(kind.__name__ for kind in kinds)
        raise BadKey(f"keys of {name} have the parts ({names}), and {what} does not fit them: {shown(text)}")
    return parts
