"""State of a running system, through a gateway: pages of a listing, for `styx state list` and `styx state export`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import msgspec

from styx.cli.exit_codes import FAILURE, SUCCESS, CommandFailed, usage_error
from styx.cli.gateway_request import GatewayWork, NoReply, ask, read_outcome

GONE_ADVICE = (
    "The epoch of the first page is not kept any more: many transactions have committed since. List on without --at, "
    "raise Limits.versions_max, or look at a snapshot (--store, --from, --data-dir)"
)
TOO_OLD = "snapshot_too_old"


class LivePage(NamedTuple):
    """A page: its entries, each as JSON with `key` and `value`; the key behind which the next one begins, as text, None
    if there is no next one; and the epoch at whose end it was read.
    """

    entries: list[msgspec.Raw]
    after: str | None
    epoch: int


class _Result(msgspec.Struct):
    entries: list[msgspec.Raw]
    after: str | None


class _Read(msgspec.Struct):
    epoch: int


class _Answer(msgspec.Struct):
    result: _Result
    read: _Read


class LiveGateway:
    """The gateway at `url`. Raises `CommandFailed` for whatever goes wrong with it."""

    def __init__(self, url: str, timeout: float, api_key: str | None, ca: Path | None) -> None:
        self.url = url
        self._options = (timeout, api_key, ca)

    def page(
        self, listed: str, prefix: str, after: str | None, limit: int, at: int | None, freshness: str | None = None
    ) -> LivePage:
        """A page of `listed`, an operator or a table such as `cart/items`."""
        operator, _, table = listed.partition("/")
        given: dict[str, Any] = {"prefix": prefix, "limit": limit}
        given |= {"rows": table} if table else {}
        given |= {} if after is None else {"after": after}
        headers = {"Styx-At": str(at)} if at is not None else {"Styx-Freshness": freshness or "latest"}
        try:
            path = f"/v1/{quote(operator, safe='')}?{urlencode(given)}"
        except UnicodeEncodeError:
            raise usage_error("the operator, prefix or key is not valid Unicode") from None
        body = self.get(path, headers)
        try:
            answer = msgspec.json.decode(body, type=_Answer)
        except msgspec.DecodeError:
            raise CommandFailed(f"{self.url} gives no listing: is its gateway of an older release?") from None
        return LivePage(answer.result.entries, answer.result.after, answer.read.epoch)

    def pages(self, listed: str, limit: int, at: int | None) -> Iterator[LivePage]:
        """All pages, all of one epoch."""
        page = self.page(listed, "", None, limit, at)
        while True:
            yield page
            if page.after is None:
                return
            page = self.page(listed, "", page.after, limit, page.epoch)

    def get(self, path: str, headers: dict[str, str] | None = None) -> bytes:
        """The body of an answer that says no error."""
        try:
            answer = ask(self.url, GatewayWork("GET", path, *self._options, headers=headers or {}))
        except NoReply as error:
            raise CommandFailed(f"{error}; nothing was changed, ask again") from None
        outcome = read_outcome(answer, self.url)
        if outcome.exit_code != SUCCESS:
            told = outcome.complaint.removeprefix("styx: ")
            if told.startswith(TOO_OLD):
                raise CommandFailed(f"{told}.\n{GONE_ADVICE}", FAILURE)
            raise CommandFailed(told, outcome.exit_code)
        return answer.body
