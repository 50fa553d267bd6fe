"""A lane: calls for later that are made one after the other, in the order in which they were given.

The entry of such a call has its lane in its id, and stands in the agenda of the entity that holds the lane. The next
one of a lane is taken when the delivery before has ended for good: made, or given up after its last attempt
(`styx.state.due_calls`). So whoever sees what one of them has done sees what all earlier ones have done, wherever they
went. Lanes do not wait for each other.

Ids are in the serial order, so transactions that give to one lane are in no conflict. A lane is held by the entity that
gives, or by one entity for a whole group of givers.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from styx.errors import BadKey
from styx.model.key_text import text_of
from styx.values.codec import shown

if TYPE_CHECKING:
    from styx.model.operator import Operator

_MARK: Final = "~"
"""Stands before the lane in the id of an entry, and in no other id."""
_DIGEST_BYTES: Final = 8


def lane_of(its_id: str) -> str:
    """The lane of an agenda's entry, by its id; "" if it is in none."""
    return its_id.partition(_MARK)[2]


def in_lane(its_id: str, lane: str) -> str:
    """The id of an entry that is to be in a lane."""
    return its_id + _MARK + lane


def lane_name(*what: str) -> str:
    """A lane's name, made of texts that say what it is for. Those of two with one name would share a lane."""
    parts = []
    for text in what:
        encoded = text.encode()
        parts += [len(encoded).to_bytes(4, "big"), encoded]
    return blake2b(b"".join(parts), digest_size=_DIGEST_BYTES).hexdigest()


def group_text(group: Any) -> str:
    """A group as text; raises `BadKey` for what is no str, int or tuple of them."""
    try:
        return text_of(group)
    except BadKey:
        raise BadKey(f"a group is a str, an int of 64 bits or a tuple of them: got {shown(group)}") from None


def holder(operator: Operator, group: Any) -> Any:
    """The key of the operator's entity that holds the lanes of a group. The entity need not exist: it has an agenda."""
    text = group_text(group)
    try:
        return operator.check_key(group)
    except BadKey:
        number = int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") >> 1
        kinds = operator.key_type.parts or (operator.key_type.scalar,)
        parts = tuple(number if kind is int else text for kind in kinds)
        return parts if operator.key_type.scalar is None else parts[0]
