"""The small HTTP server that each process of a cluster has beside its work."""

import asyncio
import urllib.error
import urllib.request

import pytest

from styx import ConfigurationError
from styx.cluster.facts_server import FactsAddress, Page, facts_server, metrics_page, well
from styx.testing.patience import PATIENCE_SECONDS

PAGES = {
    "/healthz": lambda: well(None),
    "/readyz": lambda: well("it begins"),
    "/metrics": lambda: metrics_page("a 1\n"),
    "/fault": lambda: Page(b"%d" % (1 // 0)),
}


def _get(url: str, data: bytes | None = None) -> tuple[int, str, str]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data=data), timeout=PATIENCE_SECONDS) as response:
            return response.status, response.headers["content-type"], response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers["content-type"], error.read().decode()


async def get(url: str, data: bytes | None = None) -> tuple[int, str, str]:
    return await asyncio.to_thread(_get, url, data)


def test_pages() -> None:
    async def main() -> None:
        async with facts_server(FactsAddress("127.0.0.1", 0), PAGES) as url:
            assert url is not None
            assert await get(url + "/healthz") == (200, "application/json", '{"status":"ok"}')
            assert await get(url + "/readyz") == (
                503,
                "application/json",
                '{"status":"unavailable","reason":"it begins"}',
            )
            assert await get(url + "/metrics") == (200, "text/plain; version=0.0.4; charset=utf-8", "a 1\n")
            assert (await get(url + "/other"))[0] == 404
            assert (await get(url + "/healthz", b"{}"))[0] == 405
            assert (await get(url + "/fault"))[0] == 500
            assert (await get(url + "/healthz"))[0] == 200, "a page that fails harms no other"
        with pytest.raises(urllib.error.URLError):
            await get(url + "/healthz")

    asyncio.run(main())


def test_nowhere() -> None:
    async def main() -> None:
        async with facts_server(FactsAddress("127.0.0.1", None), PAGES) as url:
            assert url is None

    asyncio.run(main())


def test_a_port_that_is_taken() -> None:
    async def main() -> None:
        async with facts_server(FactsAddress("127.0.0.1", 0), PAGES) as url:
            assert url is not None
            port = int(url.rpartition(":")[2])
            with pytest.raises(ConfigurationError, match="choose another --http-port"):
                async with facts_server(FactsAddress("127.0.0.1", port), PAGES):
                    pass

    asyncio.run(main())
