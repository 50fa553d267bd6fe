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
  1    no gateway, or the changes from --from on are not kept any more
  2    rejected: no such operator or table
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
        Parameter(name="--from", help="Begin with this epoch, if its changes are kept; else with those from now on."),
    ] = None,
    url: GatewayUrl = None,
    api_key: ApiKey = None,
    ca: Authority = None,
) -> int:
    """Print what transactions change, a line of JSON for each epoch with changes.

    A line has the epoch, and its changes: of an entity's state {"key": …,
    "value": …}, of a row also its "table" and "row_key". What is gone has
    "deleted" in place of a value. Each epoch comes once. The last line of a run
    says where another one goes on: --from its epoch + 1.
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
