"""Whether a browser may have sent a request on behalf of a stranger's page. The headers alone decide.

A page of any origin can make its visitor's browser send requests to any address that the browser reaches, this
machine's loopback included. Browsers reveal such requests: in `Origin`, in `Sec-Fetch-Site`, in a `Host` that is not
ours, and in the three content types that they send to other origins without asking first. This does not keep out
programs other than browsers, which can send any header.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from styx.errors import ConfigurationError
from styx.gateway.hosts import HOSTS_MAX, Authority, Hosts, listed, parse_authority
from styx.values.codec import shown

FORBIDDEN_HOST: Final = "forbidden_host"
FORBIDDEN_ORIGIN: Final = "forbidden_origin"
BAD_TYPE: Final = "unsupported_media_type"
HEALTH_PATHS: Final = frozenset({"/healthz", "/readyz"})
"""Paths that supervisors ask for under any host name. Their answers contain no secrets."""
LANDING_PATHS: Final = frozenset({"/", "/docs", "/sql"})
"""Pages that a link on another site may open."""

_ORIGIN_CHARS_MAX: Final = 320
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_TYPES: Final = frozenset(
    {
        "application/json",
        "application/x-ndjson",
        "application/ndjson",
        "application/jsonl",
        "application/msgpack",
        "application/x-msgpack",
        "application/octet-stream",
        "application/sql",
    }
)
"""Content types that a page cannot send to another origin without a preflight."""
_WATCHED: Final = frozenset(
    {
        b"host",
        b"origin",
        b"content-type",
        b"content-length",
        b"transfer-encoding",
        b"sec-fetch-site",
        b"sec-fetch-mode",
        b"sec-fetch-dest",
        b"access-control-request-method",
    }
)

Headers = Iterable[tuple[bytes, bytes]]


class Refusal(NamedTuple):
    """Why a request is not served: a code, and words that say which option allows it."""

    code: str
    message: str


class Verdict(NamedTuple):
    """The verdict on a request: a `refusal` or None, the other origin whose page may read the answer (`cors_origin`),
    and whether the request is a preflight, in which the browser only asks which requests it may send.
    """

    refusal: Refusal | None = None
    cors_origin: bytes | None = None
    preflight: bool = False


_OWN_SITES: Final = (None, b"same-origin", b"none")
"""`Sec-Fetch-Site` of requests by the gateway's own pages and by no page. Old browsers do not send it."""
_FINE: Final = Verdict()


class OriginRules:
    """The rules of one gateway: its own hosts, and the origins of others whose pages may use it.

    Raises `ConfigurationError` for an origin that is none, or that stands for several.
    """

    def __init__(self, hosts: Hosts, allowed_origins: Iterable[str] = ()) -> None:
        self._hosts = hosts
        found = listed(allowed_origins)
        if len(found) > HOSTS_MAX:
            raise ConfigurationError(f"{len(found)} origins are allowed; {HOSTS_MAX} is the most")
        self._origins = frozenset(map(_checked_origin, found))

    @property
    def shared(self) -> bool:
        """Whether other origins may use the gateway, so that answers differ by origin."""
        return bool(self._origins)

    def judge(self, method: str, path: str, http_version: str, scheme: str, headers: Headers) -> Verdict:
        """The verdict about a request, from its first line and its headers."""
        if path in HEALTH_PATHS and method in ("GET", "HEAD"):
            return _FINE
        said: dict[bytes, bytes] = {}
        for name, value in headers:
            if name in _WATCHED:
                if name in said:
                    return Verdict(_repeated(name))
                said[name] = value
        return self.judge_once(method, path, http_version, scheme, said)

    def judge_once(
        self, method: str, path: str, http_version: str, scheme: str, said: Mapping[bytes, bytes]
    ) -> Verdict:
        """The same about a request for no page of health, in which no header is repeated."""
        refusal = self._of_host(said.get(b"host"), http_version)
        if refusal is not None:
            return Verdict(refusal)
        origin, site = said.get(b"origin"), said.get(b"sec-fetch-site")
        if origin is None and site is None:
            refusal = None if method in _SAFE_METHODS else _of_type(said, browser=False)
            return _FINE if refusal is None else Verdict(refusal)
        return self._of_browser(method, path, scheme, origin, site, said)

    def _of_host(self, host: bytes | None, http_version: str) -> Refusal | None:
        if host is None:
            # Browsers do not send HTTP/1.0, but health checks of load balancers do.
            return None if http_version == "1.0" else Refusal("bad_request", "the request has no Host header")
        if self._hosts.admit(host):
            return None
        return Refusal(
            FORBIDDEN_HOST,
            f"{shown(host.decode('latin-1'))} is no host of this gateway. If it is meant to be one, allow it: "
            "--allow-host NAME, STYX_ALLOW_HOST in its environment, or allowed_hosts= of styx.asgi",
        )

    def _of_browser(
        self, method: str, path: str, scheme: str, origin: bytes | None, site: bytes | None, said: Mapping[bytes, bytes]
    ) -> Verdict:
        shared = False
        if origin is not None:
            named = _parse_origin(origin.decode("latin-1"))
            shared = named in self._origins
            # A page of the same host may have another origin, which only the browser knows; `Sec-Fetch-Site` tells.
            own = site in _OWN_SITES and _is_own(named, said.get(b"host", b""), scheme)
            if not shared and not own:
                return Verdict(_foreign(origin))
        elif site not in _OWN_SITES and not _is_visit(method, path, said):
            return Verdict(_foreign(None))
        allowed = origin if shared else None
        if method == "OPTIONS" and b"access-control-request-method" in said and shared:
            return Verdict(None, allowed, preflight=True)
        refusal = None if method in _SAFE_METHODS else _of_type(said, browser=True)
        return Verdict(refusal, allowed)


class _Origin(NamedTuple):
    scheme: str
    authority: Authority


def _parse_origin(text: str) -> _Origin | None:
    scheme, colon, rest = text.partition("://")
    if not colon or len(text) > _ORIGIN_CHARS_MAX or not scheme:
        return None
    authority = parse_authority(rest)
    if authority is None:
        return None
    scheme = scheme.lower()
    return _Origin(scheme, _with_port(authority, scheme))


def _with_port(authority: Authority, scheme: str) -> Authority:
    return authority if authority.port is not None else Authority(authority.host, _DEFAULT_PORTS.get(scheme))


def _is_own(origin: _Origin | None, host: bytes, scheme: str) -> bool:
    """Whether a page of `origin` came from the host that the request is sent to.

    Behind a proxy that ends TLS a page's scheme is https while the request's is http. The reverse cannot happen.
    """
    authority = parse_authority(host.decode("latin-1"))
    if origin is None or authority is None or origin.scheme not in _DEFAULT_PORTS:
        return False
    if scheme == "https" and origin.scheme != "https":
        return False
    return _with_port(authority, origin.scheme) == origin.authority


def _is_visit(method: str, path: str, said: Mapping[bytes, bytes]) -> bool:
    """Whether a person follows a link to a page of this gateway. Other pages cannot read that page's text."""
    opened = said.get(b"sec-fetch-mode") == b"navigate" and said.get(b"sec-fetch-dest") == b"document"
    return opened and method in ("GET", "HEAD") and path in LANDING_PATHS


def _of_type(said: Mapping[bytes, bytes], browser: bool) -> Refusal | None:
    sent = said.get(b"content-type")
    if sent == b"application/json":
        return None
    if sent is None:
        with_body = said.get(b"content-length", b"0").strip(b"0") or b"transfer-encoding" in said
        if not (browser and with_body):
            return None
        what = "a browser's request without a content type"
    else:
        kind = sent.decode("latin-1").partition(";")[0].strip().lower()
        if kind in _TYPES or (kind.startswith("application/") and kind.endswith("+json")):
            return None
        what = shown(kind)
    return Refusal(
        BAD_TYPE,
        f"{what} is not taken: say what the body is with Content-Type: application/json. "
        "With curl: --json DATA instead of -d DATA, or -H 'Content-Type: application/json'",
    )


def _foreign(origin: bytes | None) -> Refusal:
    whose = "another origin" if origin is None else f"the origin {shown(origin.decode('latin-1'))}"
    return Refusal(
        FORBIDDEN_ORIGIN,
        f"a page of {whose} may not use this gateway. If it is meant to, allow it: "
        "--allow-origin https://HOST, STYX_ALLOW_ORIGIN in its environment, or allowed_origins= of styx.asgi",
    )


def _repeated(name: bytes) -> Refusal:
    return Refusal("bad_request", f"the header {name.decode()} comes more than once")


def _checked_origin(text: str) -> _Origin:
    origin = _parse_origin(text.removesuffix("/"))
    if origin is None or "*" in text:
        raise ConfigurationError(
            f"{shown(text)} is no origin to allow: one looks like https://shop.example.com or http://localhost:3000, "
            "and each is named by itself"
        )
    return origin
