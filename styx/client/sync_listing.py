"""The listings of a blocking client, as `styx.client.listing` has them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

from styx.client.listing import ENTRIES_A_PAGE, ListingClient
from styx.model.entity_list import LIST_DEFAULT, ListEntry, ListPage
from styx.model.limits import TIMEOUT_SECONDS_DEFAULT

T = TypeVar("T")


class SyncListing:
    """The part of a blocking client that lists."""

    @property
    def _client(self) -> ListingClient:
        raise NotImplementedError

    def _start(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        raise NotImplementedError

    def list(
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
        timeout: float = TIMEOUT_SECONDS_DEFAULT,
    ) -> ListPage:
        """A page of the entities of an operator, or of the rows of a table, as `ListingClient.list`."""
        asked = self._client.list(
            listed,
            prefix=prefix,
            after=after,
            limit=limit,
            values=values,
            freshness=freshness,
            at=at,
            max_staleness_s=max_staleness_s,
            timeout=timeout,
        )
        return self._start(asked).result()

    def entries(
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
        timeout: float = TIMEOUT_SECONDS_DEFAULT,
    ) -> Iterator[ListEntry]:
        """All entries of a listing, all of one moment, as `ListingClient.entries`: for `for` loops."""
        found = self._client.entries(
            listed,
            prefix=prefix,
            after=after,
            page=page,
            values=values,
            freshness=freshness,
            at=at,
            max_staleness_s=max_staleness_s,
            timeout=timeout,
        )
        while (entry := self._start(_next(found)).result()) is not None:
            yield entry


async def _next(entries: AsyncIterator[ListEntry]) -> ListEntry | None:
    return await anext(entries, None)
