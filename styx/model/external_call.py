"""An external call as a function makes it: who makes it, and what of the transaction identifies it in the log.

Two attempts of a transaction make the same external call if function, arguments, call path and number are the same.
Paper section 7.5.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from styx.model.waiting import ExternalCall, function_text, suspend
from styx.values.codec import decode_plain, encode_any, shown

if TYPE_CHECKING:
    from styx.model.context import Context


async def call_external(context: Context, function: Any, args: tuple[Any, ...]) -> Any:
    """The coroutine of `Context.call_external`."""
    data = await suspend(_made(context, function, args))
    return decode_plain(data)


call_external.__qualname__ = "Context.call_external"  # what Python calls it in its messages


def _made(context: Context, function: Any, args: tuple[Any, ...]) -> ExternalCall:
    """The next external call of an invocation; an error dooms the transaction."""
    if context._left < 0:
        context._refuse()
    if context._spec.read_only:
        raise context._violation("call_external")
    context._externals += 1
    if not callable(function):
        raise context._doomed(
            TypeError(
                f"ctx.call_external takes a function and its arguments, got {shown(function)}: write "
                "ctx.call_external(function, …)"
            )
        )
    name = function_text(function)
    try:
        data = encode_any(args, f"arguments of {name}")
        identity = encode_any((context._env.tid, context._path, context._externals, name, data), name)
    except BaseException as error:  # noqa: BLE001 - an argument's own code can run here
        raise context._doomed(error) from None
    return ExternalCall(context, blake2b(identity, digest_size=16).digest(), function, args)
