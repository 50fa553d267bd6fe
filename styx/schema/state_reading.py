"""One operator's stored entities as an app's code reads them: whether each is found and decoded, or must be converted.

`migrate=` is for exactly those values that the new `state_type` does not read completely: it cannot decode them, or
would drop a part of them. The `state_type` must read the result of `migrate=` completely, so `migrate=` is never called
for that result again, however often such a version is deployed. Pure; the state is not changed.
"""

from __future__ import annotations

from typing import Any, Final

from styx.errors import describe
from styx.model.operator import Operator
from styx.schema.dropped_parts import dropped_part
from styx.values.codec import decode_plain, shown

_AT: Final = " - at `$"


class Misfit(Exception):
    """A stored value cannot be used; its text says why, and begins with the path to the part that is to blame.

    Made of a text, or of what the codec raised and what to say behind it: most of a million texts nobody reads.
    """

    def __str__(self) -> str:
        error, *behind = self.args
        return str(error) if isinstance(error, str) else "".join([reason_of(error), *behind])


class Reading:
    """What became of one value. `data` is what the new code stores in its place, None if it stays; `dropped` is the
    path to a part of it that the new type does not have.
    """

    __slots__ = ("data", "dropped")

    def __init__(self, data: bytes | None = None, dropped: str = "") -> None:
        self.data = data
        self.dropped = dropped


_WHOLE: Final = Reading()


class StateReader:
    """Reads the values of `operator`; what it converts may have `bytes_max` bytes."""

    def __init__(self, operator: Operator, bytes_max: int) -> None:
        self.operator = operator
        self._bytes_max = bytes_max
        self._typed = operator.typed_state
        self._migration = operator.migration

    @property
    def runs_code(self) -> bool:
        """Reading may run code of the app's: of its types, or its `migrate=`."""
        return self._typed is not None

    def read(self, data: bytes) -> Reading:
        """What the new code makes of a stored value; raises `Misfit` if it can do nothing with it."""
        typed = self._typed
        try:
            if typed is None:
                decode_plain(data)
                return _WHOLE
            value = typed.decode(data)
            if typed.pack(value) == data:
                return _WHOLE  # the usual case
            dropped = dropped_part(decode_plain(data), value)
        except BaseException as error:  # noqa: BLE001 - a state type's own code runs here: it can raise anything
            if self._migration is None:
                raise Misfit(error) from None
        else:
            if not dropped or self._migration is None:
                return Reading(None, dropped)
        return Reading(self._migrated(data))

    def _migrated(self, data: bytes) -> bytes:
        new = self._once(data)
        if self._once(data) != new:
            raise Misfit(
                ": migrate= gave two results for one value; it must use nothing but that: no clock, no random numbers"
            )
        typed = self._typed
        assert typed is not None
        try:
            dropped = dropped_part(decode_plain(new), typed.decode(new))
        except BaseException as error:  # noqa: BLE001 - a state type's own code runs here
            raise Misfit(f": what migrate= gave cannot be read again: {describe(error)[1]}") from None
        if dropped:
            raise Misfit(f": what migrate= gave has {dropped}, which the state_type does not have")
        if len(new) > self._bytes_max:
            raise Misfit(f": what migrate= gave has {len(new)} bytes; the limit is {self._bytes_max}")
        return new

    def _once(self, data: bytes) -> bytes:
        migration = self._migration
        assert migration is not None
        try:
            old = migration.decode(data)
        except BaseException as error:  # noqa: BLE001 - the old type's own code runs here
            raise Misfit(error, " (the type of migrate='s parameter)") from None
        try:
            new = migration.function(old)
        except BaseException as error:  # noqa: BLE001 - the user's function can raise anything
            kind, message = describe(error)
            raise Misfit(f": migrate= raised {kind}: {message}") from None
        try:
            return self.operator.encode_state(new)
        except BaseException as error:  # noqa: BLE001 - a value's own code runs here
            raise Misfit(f": migrate= returned what cannot be stored: {describe(error)[1]}") from None


def entity_name(operator: str, key: Any) -> str:
    """As errors name it: `acc['a']`."""
    return f"{operator}[{shown(key)}]"


def reason_of(error: BaseException) -> str:
    """What msgspec says, as it reads behind an entity's name: `.address: missing required field 'zip'`."""
    kind, message = describe(error)
    message, _, path = message.partition(_AT)
    message = message.replace("`", "'").removeprefix("Object ")
    text = message[:1].lower() + message[1:] if path or message.startswith(("Expected", "missing")) else message
    prefix = "" if kind in ("ValidationError", "DecodeError") else f"{kind}: "
    return f"{path.removesuffix('`')}: {prefix}{text}"
