"""`styx events`: prints what committed transactions have emitted, read through a gateway."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import Parameter

from styx.cli.common_options import ApiKey, Authority, GatewayUrl

if TYPE_CHECKING:
    from styx.model.event_seen import EventMessage

_OF_ENTITIES: Final = ("unknown_operator", "unknown_entity")
"""The codes of a gateway whose app has no events: it takes `events` for the name of an operator."""
EXAMPLES: Final = """\
Examples:
  styx events order-paid
  styx events order-paid --follow
  styx events order-paid --json --after 000000000003100000000000000205.010.00000001
  styx events order-paid --follow --after end --url http://shop.internal:8080

Exit codes:
  0    all events that there are were printed
  1    no gateway, or events behind --after are gone
  2    rejected: no such event, or no cursor
  130  interrupted, which is how --follow ends
"""


def events(
    event: Annotated[str, Parameter(help="The event's name, such as order-paid.")],
    /,
    *,
    follow: Annotated[bool, Parameter(help="Go on with those that come.", negative="")] = False,
    after: Annotated[
        str | None, Parameter(help='Begin behind this cursor; "end" for only those from now on.', env_var="STYX_AFTER")
    ] = None,
    json: Annotated[bool, Parameter(help="A line of JSON for each, with its cursor.", negative="")] = False,
    url: GatewayUrl = None,
    api_key: ApiKey = None,
    ca: Authority = None,
) -> int:
    """Print events, one a line, in the serial order.

    A line has the time, the place of the transaction, the entity that emitted
    it, and the value as JSON. The last line of a run with --json has the cursor
    from which another run goes on.
    """
    import asyncio

    from styx.cli.exit_codes import SUCCESS, CommandFailed, usage_error
    from styx.cli.gateway_request import bearer
    from styx.cli.run_directory import gateway_url
    from styx.client.credential import Credential
    from styx.client.http import HttpClient
    from styx.client.http_events import HttpEvents
    from styx.errors import BadArguments, ConfigurationError, RequestRejected, StyxError
    from styx.model.event import EVENT_NAME_CHARS_MAX, is_event_name
    from styx.model.event_seen import checked_cursor

    if not is_event_name(event):
        raise usage_error(
            f"EVENT is a name of 1 to {EVENT_NAME_CHARS_MAX} letters, digits, '.', '_' and '-', such as order-paid: "
            f"got {event[:EVENT_NAME_CHARS_MAX]!r}"
        )

    async def printed() -> None:
        url_used = gateway_url(url)
        client = HttpClient(url_used, Credential(None if api_key is None else bearer(api_key)), ca)
        async with client:
            source: HttpEvents = client.event_source
            async for messages in source.read(event, checked_cursor(after, "--after"), follow):
                for message in messages:
                    print(_json_line(message) if json else _line(message))
                sys.stdout.flush()

    try:
        asyncio.run(printed())
    except BadArguments as error:
        raise usage_error(str(error)) from None
    except RequestRejected as error:
        if isinstance(error, ConnectionError):
            raise CommandFailed(str(error.message)) from None
        if error.code in _OF_ENTITIES:
            raise usage_error("the app has no events: declare them with App(…, events=[…])") from None
        raise usage_error(f"{error.code}: {error.message}") from None
    except ConfigurationError:
        raise
    except StyxError as error:
        raise CommandFailed(str(error)) from None
    return SUCCESS


def _line(message: EventMessage) -> str:
    from styx.model.event_seen import seen

    event = seen(message, None)
    time = event.time.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
    value = bytes(message.value).decode()
    return f"{time}  {event.epoch}.{event.phase}.{event.tid}  {event.operator}[{_key(event.key)}]  {value}"


def _key(key: Any) -> str:
    return ", ".join(map(str, key)) if isinstance(key, tuple) else str(key)


def _json_line(message: EventMessage) -> str:
    import msgspec

    fields = {"cursor": message.cursor, **msgspec.structs.asdict(message)}
    return msgspec.json.encode(fields).decode()
