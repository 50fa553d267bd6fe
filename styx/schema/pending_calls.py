"""Whether a version of the app could make the calls that were given for later before it: looked at call by call.

A call was checked against the version that gave it. Another one may lack its function, or take other keys or arguments.
"""

from __future__ import annotations

from styx.errors import FunctionTooLong, StyxError, describe
from styx.model.agenda import AgendaEntry, called_key
from styx.model.app import App


def why_not_made(app: App, entry: AgendaEntry) -> str | None:
    """Why a call could not be made; None if it could. Runs code of the key's and the arguments' types."""
    named = f"it calls {entry.operator}.{entry.function} later"
    operator = app.operators.get(entry.operator)
    if operator is None or not operator.has(entry.function):
        return f"{named}, which the new version does not have"
    try:
        operator.check_key(called_key(entry))
    except FunctionTooLong:
        raise
    except Exception as error:  # noqa: BLE001 - a key type's own code can run here
        return f"{named}, and its key does not fit the new version: {_text(error)}"
    try:
        operator.functions[entry.function].decode(entry.params)
    except FunctionTooLong:
        raise
    except Exception as error:  # noqa: BLE001 - an argument's own code can run here
        return f"{named}, and its arguments do not fit the new version: {_text(error)}"
    return None


def _text(error: Exception) -> str:
    kind, message = describe(error)
    return message if isinstance(error, StyxError) else f"{kind}: {message}"
