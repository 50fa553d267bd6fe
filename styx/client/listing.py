"""Listings as all clients have them: pages of an operator's entities, or of the rows of a table, in order of their
keys.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

from styx.client.list_pages import RawPage
from styx.client.typed_results import typed_rows
from styx.errors import BadArguments, ConfigurationError
from styx.model.entity_list import LIST_DEFAULT, ListEntry, Listing, ListPage
from styx.model.freshness import Freshness, freshness_of
from styx.model.key_range import key_text
from styx.model.limits import TIMEOUT_SECONDS_DEFAULT
from styx.model.operator import Operator
from styx.model.table_names import own_name, owner_of
from styx.relational.table import Table
from styx.values.codec import decode_plain, shown

ENTRIES_A_PAGE: Final = 1_000
"""Entries that an iterator over all pages asks for at once."""


class ListingClient:
    """The part of a client that lists."""

    async def list(
        self,
        listed: Any,
        *,
        prefix: Any = "",
        after: Any = None,
        limit: int = LIST_DEFAULT,
        values: bool = True,
        freshness: str | None = None,
        at: int | None = None,
        max_staleness_s: float | None = None,
        timeout: float = TIMEOUT_SECONDS_DEFAULT,  # noqa: ASYNC109 - as in `Client.request`
    ) -> ListPage:
        """A page of the entities of an operator that have a value, or of the rows of a table, in order of their keys:
        texts by code point, numbers by size. It is read outside the log, at the end of one epoch: no transaction waits.

        Parameters
        ----------
        listed: an `Operator` or its name; a `Table` or its full name, such as "cart/items", for rows.
        prefix: only keys that begin with it: a text; for keys of several parts, and rows, a tuple of the first parts,
            of which the last may be the beginning of a text, or its JSON.
        after: only keys behind this one: `after` of the page before, or a key.
        limit: entries of the page, 1 to 10,000. It has fewer if their values have more than 4 MiB.
        values: False gives keys alone; values are None.
        freshness, at, max_staleness_s, timeout: as for `read`. All pages of one listing are of one moment with `at=`
            the `epoch` of the first one, as long as it is kept.

        Raises `BadArguments`, `RequestRejected` (`bad_arguments` for a key or prefix that does not fit),
        `SnapshotTooOld`, `TransactionAborted` for a value that does not fit its type, and what `read` raises.
        """
        wanted = listing_of(listed, prefix, after, limit, values)
        page = await self._list_page(wanted, freshness_of(freshness, self._token, at, max_staleness_s), timeout)
        self._listed(page.epoch)
        if not isinstance(listed, Table) or not values:
            return page
        rows = typed_rows(listed, [entry.value for entry in page.entries])
        entries = [ListEntry(entry.key, row) for entry, row in zip(page.entries, rows, strict=True)]
        return page._replace(entries=entries)

    async def entries(
        self,
        listed: Any,
        *,
        prefix: Any = "",
        after: Any = None,
        page: int = ENTRIES_A_PAGE,
        values: bool = True,
        freshness: str | None = None,
        at: int | None = None,
        max_staleness_s: float | None = None,
        timeout: float = TIMEOUT_SECONDS_DEFAULT,  # noqa: ASYNC109 - of each page
    ) -> AsyncIterator[ListEntry]:
        """All entries of a listing, all of one moment: `async for key, value in client.entries(account)`. `page` of
        them are asked for at once; otherwise as `list`.

        Raises `SnapshotTooOld` in the middle if the epoch of the first page is not kept any more, which happens to
        long listings beside many writers: raise `Limits.versions_max`, list page by page without `at=`, or look at a
        snapshot (`styx state export`).
        """
        wanted: dict[str, Any] = {"prefix": prefix, "limit": page, "values": values, "timeout": timeout}
        found = await self.list(
            listed, after=after, freshness=freshness, at=at, max_staleness_s=max_staleness_s, **wanted
        )
        while True:
            for entry in found.entries:
                yield entry
            if found.after is None:
                return
            found = await self.list(listed, after=found.after, at=found.epoch, **wanted)

    @property
    def _token(self) -> int:
        """The token of the session."""
        raise NotImplementedError

    def _listed(self, epoch: int) -> None:
        """The session has seen the epoch."""
        raise NotImplementedError

    async def _list_page(self, wanted: Listing, freshness: Freshness, seconds: float) -> ListPage:
        raise ConfigurationError(
            f"a {type(self).__name__} has no way to read outside the log, and so to list: connect to a gateway by HTTP"
        )


def page_of(page: RawPage) -> ListPage:
    """A page as a client gives it."""
    return ListPage([ListEntry(key, decode_plain(value)) for key, value in page.entries], page.after, page.epoch)


def page_of_json(result: Any, epoch: int) -> ListPage:
    """A page as a gateway's JSON has it."""
    entries = [
        ListEntry(tuple(each["key"]) if type(each["key"]) is list else each["key"], each.get("value"))
        for each in result["entries"]
    ]
    return ListPage(entries, result["after"], epoch)


def listing_of(listed: Any, prefix: Any, after: Any, limit: Any, values: Any) -> Listing:
    """What `ListingClient.list` is asked for; raises `BadArguments`."""
    name = listed.full_name if isinstance(listed, Table) else listed.name if isinstance(listed, Operator) else listed
    if not isinstance(name, str):
        raise BadArguments(f"an operator or a table is listed, given by itself or by name: got {shown(listed)}")
    behind = None if after is None else _text(after, "after")
    wanted = Listing(owner_of(name), own_name(name), _text(prefix, "prefix"), behind, limit, bool(values))
    return wanted.checked()


def _text(key: Any, what: str) -> str:
    if isinstance(key, str | int) and not isinstance(key, bool):
        return key_text(key)
    if isinstance(key, tuple | list) and all(type(part) in (str, int) for part in key):
        return key_text(list(key)) if key else ""
    raise BadArguments(
        f"{what}= is a key or the beginning of one: a text, a number or a tuple of them, got {shown(key)}"
    )
