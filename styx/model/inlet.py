"""An inlet: an operator of the engine's own through which an event of the app may come from outside.

`client.publish` and `POST /v1/events/NAME` send a value to one of its entities, which emits the event in a transaction
of its own. An event without an inlet is emitted by functions of the app alone. An inlet keeps no state.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from styx.errors import BadArguments, ConfigurationError, describe
from styx.model.app import App
from styx.model.context import Context
from styx.model.event import Event
from styx.model.limits import IDEMPOTENCY_KEY_CHARS_MAX
from styx.model.operator import Operator
from styx.values.codec import shown

PUBLISH: Final = "publish"
"""The function of an inlet."""

_HEADER: Final = re.compile(r"[A-Za-z0-9-]{1,100}+", re.ASCII)
_NAME_START: Final = "inlet."
_VISIBLE: Final = re.compile(rf"[\x21-\x7e]{{1,{IDEMPOTENCY_KEY_CHARS_MAX}}}+")

Verify = Callable[[Mapping[str, str], bytes], bool]


class Inlet(Operator):
    """Lets an event come from outside; it stands among the app's operators.

        prices = Inlet(price_changed, key=lambda price: price.product)
        app = App("shop", [stock, prices], events=[price_changed])

    Parameters
    ----------
    event: an event of the app.
    key: makes a text of a value; the events of one text are in one partition and in order. None: in any.
    verify: says of an HTTP request's headers, by their names in lower case, and of its body whether they are the
    sender's: `styx.webhooks` has some. It runs in the gateway, and may read the gateway's environment. None: whoever
    may publish the event by the gateway's rules is the sender.
    once: what tells that two requests are one, which is published once: the name of a header, such as
    "X-GitHub-Delivery", or a function of the value that gives a text. None: the header Idempotency-Key, if it is sent.
    name: the operator's; by default "inlet." and the event's name.

    The functions are plain ones. Raises `ConfigurationError`.
    """

    served = False

    def __init__(
        self,
        event: Event[Any],
        *,
        key: Callable[[Any], str] | None = None,
        verify: Verify | None = None,
        once: str | Callable[[Any], str] | None = None,
        name: str | None = None,
    ) -> None:
        if not isinstance(event, Event):
            raise ConfigurationError(f"Inlet takes a styx.Event, got {shown(event)}")
        super().__init__(_NAME_START + event.name if name is None else name)
        self.event = event
        for what, function in (("key", key), ("verify", verify), ("once", None if isinstance(once, str) else once)):
            if function is not None and (not callable(function) or inspect.iscoroutinefunction(function)):
                raise self._wrong(f"{what}= is a plain function, got {shown(function)}")
        if isinstance(once, str) and not _HEADER.fullmatch(once):
            raise self._wrong(f"once= is the name of a header or a function of the value, got {shown(once)}")
        self.emits = (event,)
        self.verify = verify
        self.once_header = once.lower() if isinstance(once, str) else None
        self._once = None if isinstance(once, str) else once
        self._key = key
        self.deciding = tuple(each for each in (key, verify, self._once) if each is not None)
        """The app's functions, which decide what is published where."""
        self.given: dict[str, Any] = {"event": event, "key": key, "verify": verify, "once": once, "name": name}
        """The arguments, by name."""
        super().register(self._publish_of(event))

    def key_of(self, value: Any, otherwise: str) -> str:
        """The key of the entity that emits a value. Raises `BadArguments`."""
        if self._key is None:
            return otherwise
        try:
            return str(self.check_key(self._key(value)))
        except Exception as error:  # noqa: BLE001 - code of the app
            raise self._bad("key=", error) from None

    def once_of(self, value: Any) -> str | None:
        """What tells by the value that two requests are one; None if nothing does. Raises `BadArguments`."""
        if self._once is None:
            return None
        try:
            text = self._once(value)
            if not isinstance(text, str) or not _VISIBLE.fullmatch(text):
                raise ValueError(
                    f"it gave {shown(text)}, and not 1 to {IDEMPOTENCY_KEY_CHARS_MAX} visible ASCII characters"
                )
        except Exception as error:  # noqa: BLE001 - code of the app
            raise self._bad("once=", error) from None
        return text

    def _bad(self, what: str, error: Exception) -> BadArguments:
        return BadArguments(f"{what} of the inlet of event {self.event.name!r}: {': '.join(describe(error))}")

    def _wrong(self, text: str) -> ConfigurationError:
        return ConfigurationError(f"the inlet of event {self.event.name!r}: {text}")

    @staticmethod
    def _publish_of(event: Event[Any]) -> Callable[..., Any]:
        async def publish(ctx: Context, value: Any) -> None:
            ctx.emit(event, value)

        publish.__annotations__["value"] = event.type
        return publish

    def __repr__(self) -> str:
        return f"Inlet({self.event.name!r})"


def inlet_of(app: App, wanted: Any) -> Inlet:
    """The inlet of an event, given by itself or by its name; raises `BadArguments` that lists what there is."""
    inlets = [each for each in app.operators.values() if isinstance(each, Inlet)]
    for each in inlets:
        if each.event is wanted or each.event.name == wanted:
            return each
    name = wanted.name if isinstance(wanted, Event) else wanted
    known = ", ".join(sorted(each.event.name for each in inlets)) or "none"
    raise BadArguments(f"app {app.name!r} lets no event {shown(name)} in: declare an Inlet for it. It lets in: {known}")
