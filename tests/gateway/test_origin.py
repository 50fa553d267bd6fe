"""Rules about origins: who may have sent a request, from its headers alone."""

from itertools import product

import pytest

from styx import ConfigurationError
from styx.gateway.hosts import Hosts
from styx.gateway.origin import BAD_TYPE, FORBIDDEN_HOST, FORBIDDEN_ORIGIN, OriginRules, Verdict

JSON = {"content-type": "application/json"}
HERE = {"host": "127.0.0.1:8080"}
SHOP = "https://shop.example.com"
ALLOWED = OriginRules(Hosts("127.0.0.1", ["gateway.example.com"]), [SHOP, "http://localhost:3000"])
CLOSED = OriginRules(Hosts("127.0.0.1"))


def judge(
    rules: OriginRules,
    headers: dict[str, str] | list[tuple[str, str]],
    method: str = "POST",
    path: str = "/v1/account/a/open",
    scheme: str = "http",
    version: str = "1.1",
) -> Verdict:
    pairs = headers.items() if isinstance(headers, dict) else headers
    return rules.judge(method, path, version, scheme, [(name.encode(), value.encode()) for name, value in pairs])


def code(*arguments: object, **options: object) -> str | None:
    refusal = judge(*arguments, **options).refusal  # type: ignore[arg-type]
    return None if refusal is None else refusal.code


@pytest.mark.parametrize("rules", [CLOSED, ALLOWED])
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS", "HEAD", "PUT", "DELETE"])
def test_programs_are_let_in(rules: OriginRules, method: str) -> None:
    for headers in (
        {},
        JSON,
        {"content-type": "application/json; charset=utf-8"},
        {"content-type": "Application/JSON"},
    ):
        assert judge(rules, HERE | headers, method) == Verdict()


@pytest.mark.parametrize("origin", ["http://127.0.0.1:8080", "HTTP://127.0.0.1:8080", "https://127.0.0.1:8080"])
def test_own_pages_are_let_in(origin: str) -> None:
    """With https a proxy stands before it."""
    assert judge(CLOSED, HERE | JSON | {"origin": origin, "sec-fetch-site": "same-origin"}) == Verdict()


FOREIGN = [
    *("http://localhost:18098", "http://127.0.0.1:18098", "http://127.0.0.1", "http://localhost:8080", "null", ""),
    *("https://evil.example", "http://evil.example:8080", "http://127.0.0.1:8080.evil.example", "127.0.0.1:8080"),
    *("http://127.0.0.1:8080/", "http://127.0.0.1:8080 http://evil.example", "file://", "chrome-extension://abc"),
    *("http://[::1]:8080", "ftp://127.0.0.1:8080", "//127.0.0.1:8080", "http://a@127.0.0.1:8080", "x" * 10_000),
]


@pytest.mark.parametrize(("origin", "method"), list(product(FOREIGN, ["GET", "POST", "OPTIONS", "DELETE"])))
def test_foreign_pages_are_not(origin: str, method: str) -> None:
    for path in ("/v1/account/a/open", "/v1/account/a", "/v1/account", "/metrics", "/docs", "/openapi.json", "/"):
        assert code(CLOSED, HERE | JSON | {"origin": origin}, method, path) == FORBIDDEN_ORIGIN


@pytest.mark.parametrize("site", ["cross-site", "same-site", "", "CROSS-SITE"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_nor_are_requests_without_an_origin_that_the_browser_says_are_another_sites(site: str, method: str) -> None:
    headers = HERE | JSON | {"sec-fetch-site": site, "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"}
    assert code(CLOSED, headers, method, "/v1/account/a") == FORBIDDEN_ORIGIN
    assert code(CLOSED, HERE | {"sec-fetch-site": site}, "GET", "/docs") == FORBIDDEN_ORIGIN


def test_an_address_that_was_typed_and_a_link_to_the_docs() -> None:
    visit = HERE | {"sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    for path in ("/", "/docs", "/metrics", "/v1/account/a"):
        assert code(CLOSED, visit | {"sec-fetch-site": "none"}, "GET", path) is None
    for path in ("/", "/docs"):
        assert code(CLOSED, visit | {"sec-fetch-site": "cross-site"}, "GET", path) is None
    cross = visit | {"sec-fetch-site": "cross-site"}
    assert code(CLOSED, cross, "GET", "/v1/account/a") == FORBIDDEN_ORIGIN
    assert code(CLOSED, cross, "POST", "/docs") == FORBIDDEN_ORIGIN
    assert code(CLOSED, cross | {"sec-fetch-dest": "iframe"}, "GET", "/docs") == FORBIDDEN_ORIGIN


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8080", "10.0.0.1", "", "localhost/", "a b"])
def test_foreign_hosts(host: str) -> None:
    """A name that was made to lead here: its pages are of the same origin as what they ask for."""
    said = judge(CLOSED, JSON | {"host": host, "origin": f"http://{host}", "sec-fetch-site": "same-origin"}).refusal
    assert said is not None
    assert said.code == FORBIDDEN_HOST
    assert "--allow-host" in said.message
    for method, path in product(["GET", "OPTIONS"], ["/docs", "/metrics", "/v1/a/b", "/openapi.json", "/", "/other"]):
        assert code(CLOSED, {"host": host}, method, path) == FORBIDDEN_HOST


def test_hosts_that_are_missing_or_repeated() -> None:
    assert code(CLOSED, JSON) == "bad_request"
    assert code(CLOSED, JSON, version="1.0") is None
    for name, value in (("host", "127.0.0.1"), ("origin", "http://127.0.0.1"), ("content-type", "application/json")):
        twice = [("host", "127.0.0.1")] * (name != "host") + [(name, value), (name, value)]
        assert code(CLOSED, twice) == "bad_request"


def test_health_is_told_to_everybody() -> None:
    for path, headers in product(["/healthz", "/readyz"], [{"host": "evil.example"}, {"origin": "null"}, {}]):
        assert code(CLOSED, headers, "GET", path) is None
        assert code(CLOSED, headers, "HEAD", path) is None
        assert code(CLOSED, {"host": "evil.example"}, "POST", path) == FORBIDDEN_HOST


@pytest.mark.parametrize(
    "kind",
    [
        *("text/plain", "text/plain;charset=UTF-8", "TEXT/PLAIN", " text/plain", "text/plain ; application/json"),
        *("application/x-www-form-urlencoded", "application/x-www-form-urlencoded; charset=utf-8", "text/html", ""),
        *("multipart/form-data; boundary=x", "text/plain, application/json", "application/json, text/plain", "json"),
        *("application/jsonp", "text/json", "application/+json2", ";application/json"),
    ],
)
def test_types_that_pages_may_send_to_strangers(kind: str) -> None:
    for headers in (HERE, HERE | {"origin": "http://127.0.0.1:8080"}):
        assert code(CLOSED, headers | {"content-type": kind}) == BAD_TYPE
        assert code(CLOSED, headers | {"content-type": kind}, "GET") is None


@pytest.mark.parametrize(
    "kind", ["application/json", "application/x-ndjson", "application/msgpack", "application/vnd.a+json; b=c"]
)
def test_types_that_are_taken(kind: str) -> None:
    assert code(CLOSED, HERE | {"content-type": kind}) is None


def test_a_browser_says_what_it_sends() -> None:
    own = HERE | {"origin": "http://127.0.0.1:8080"}
    assert code(CLOSED, own) is None
    assert code(CLOSED, own | {"content-length": "0"}) is None
    assert code(CLOSED, own | {"content-length": "5"}) == BAD_TYPE
    assert code(CLOSED, own | {"transfer-encoding": "chunked"}) == BAD_TYPE
    assert code(CLOSED, HERE | {"content-length": "5", "sec-fetch-site": "same-origin"}) == BAD_TYPE
    assert code(CLOSED, HERE | {"content-length": "5"}) is None, "a program need not"


def test_behind_its_own_tls_a_page_without_is_foreign() -> None:
    headers = JSON | {"host": "127.0.0.1"}
    assert code(CLOSED, headers | {"origin": "https://127.0.0.1"}, scheme="https") is None
    assert code(CLOSED, headers | {"origin": "https://127.0.0.1:443"}, scheme="https") is None
    assert code(CLOSED, headers | {"origin": "http://127.0.0.1"}, scheme="https") == FORBIDDEN_ORIGIN


@pytest.mark.parametrize("origin", [SHOP, "HTTPS://Shop.Example.com:443", "http://localhost:3000"])
def test_allowed_origins(origin: str) -> None:
    headers = HERE | JSON | {"origin": origin, "sec-fetch-site": "cross-site"}
    assert judge(ALLOWED, headers) == Verdict(None, origin.encode())
    asked = judge(ALLOWED, headers | {"access-control-request-method": "POST"}, "OPTIONS")
    assert asked == Verdict(None, origin.encode(), preflight=True)
    assert code(ALLOWED, headers | {"content-type": "text/plain"}) == BAD_TYPE
    assert code(ALLOWED, headers | {"host": "evil.example"}) == FORBIDDEN_HOST
    for other in ("http://shop.example.com", "https://shop.example.com:8443", "http://localhost:3001", "null"):
        assert code(ALLOWED, headers | {"origin": other, "access-control-request-method": "POST"}, "OPTIONS")


@pytest.mark.parametrize("text", ["*", "null", "shop.example.com", "https://*.example.com", "https://a/b", "https://"])
def test_what_cannot_be_allowed(text: str) -> None:
    with pytest.raises(ConfigurationError, match="is no origin to allow: one looks like"):
        OriginRules(Hosts("127.0.0.1"), [text])


@pytest.mark.parametrize("site", ["same-site", "cross-site", ""])
def test_a_browser_knows_better_what_is_its_own(site: str) -> None:
    """A proxy that ends TLS makes the page of http://HOST look like ours: the browser says that it is another one's."""
    own = HERE | JSON | {"origin": "https://127.0.0.1:8080", "sec-fetch-site": site}
    assert code(CLOSED, own) == FORBIDDEN_ORIGIN
    assert code(CLOSED, own | {"sec-fetch-site": "same-origin"}) is None
    shop = {"host": "gateway.example.com", "origin": SHOP, "sec-fetch-site": site}
    assert code(ALLOWED, JSON | shop) is None
