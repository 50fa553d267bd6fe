"""`styx changes`: prints what committed transactions change, read through a gateway."""

from __future__ import annotations

import sys
from typing import Annotated, Final

from cyclopts import Parameter

from styx.cli.common_options import ApiKey, Authority, GatewayUrl

EXAMPLES: Final = """\
Examples:
  styx changes account
  styx changes cart/items
  styx changes account --from 4711 --url http://shop.internal:8080

Exit codes:
  1    no gateway, or it has too many readers; or the changes are not kept any
       more: --from is too long ago, or the lines were read too slowly
  2    rejected: no such operator or table, not allowed, or --from is an epoch
       that is still to come
  130  interrupted, which is how it ends
"""


def changes(
    operator: Annotated[
        str, Parameter(help="The operator's name, such as account; for one table or view, cart/items.")
    ],
    /,
    *,
    from_: Annotated[
        int | None,
        Parameter(name="--from", help="The first epoch to print, if its changes are kept; by default the next one."),
    ] = None,
    url: GatewayUrl = None,
    api_key: ApiKey = None,
    ca: Authority = None,
) -> int:
    """Print what transactions change, a line of JSON for each epoch with changes.

    A line has the number of the epoch, and its changes. The change of an entity's
    state is {"key": …, "value": …}. That of a row has its "table" and "row_key",
    too. A state or row that is gone has "deleted" in place of "value". Each epoch
    comes once. To go on after the last line of a run, add 1 to its epoch and give
    that as --from.
    """
    import asyncio

    import msgspec

    from styx.cli.exit_codes import SUCCESS, CommandFailed, usage_error
    from styx.cli.gateway_request import bearer
    from styx.cli.run_directory import gateway_url
    from styx.client.changes import ChangedEpoch
    from styx.client.credential import Credential
    from styx.client.http import HttpClient
    from styx.errors import BadArguments, ConfigurationError, RequestRejected, SnapshotTooOld, StyxError

    name, _, table = operator.partition("/")
    encode = msgspec.json.Encoder().encode

    def line(epoch: ChangedEpoch) -> str:
        told = []
        for change in epoch.changes:
            place = {} if change.table is None else {"table": change.table}
            place |= {"key": change.key}
            place |= {} if change.table is None else {"row_key": change.row_key}
            told.append({**place, **({"deleted": True} if change.deleted else {"value": change.value})})
        return encode({"epoch": epoch.epoch, "changes": told}).decode()

    async def printed() -> None:
        client = HttpClient(gateway_url(url), Credential(None if api_key is None else bearer(api_key)), ca)
        async with client, client.changes(name, table or None, from_epoch=from_) as reader:
            async for epoch in reader:
                print(line(epoch))
                sys.stdout.flush()

    try:
        asyncio.run(printed())
    except BadArguments as error:
        raise usage_error(str(error)) from None
    except RequestRejected as error:
        if isinstance(error, ConnectionError | SnapshotTooOld):
            raise CommandFailed(str(error.message)) from None
        raise usage_error(f"{error.code}: {error.message}") from None
    except ConfigurationError:
        raise
    except StyxError as error:
        raise CommandFailed(str(error)) from None
    return SUCCESS
