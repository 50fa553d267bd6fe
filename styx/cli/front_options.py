"""Options of a gateway's front (hosts, origins, keys, rules, TLS), the same for every command that starts a gateway.
Light declarations for the parser.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

if TYPE_CHECKING:
    from styx.gateway.front import Front

API_KEYS_VARIABLE: Final = "STYX_API_KEYS"
ANYBODY: Final = """\
Make API keys and say where they are:
    styx keys add NAME --file keys.json
    … --api-keys keys.json
or take tokens (--jwt-keys), or say --anonymous if all who reach it may do everything."""

Texts = tuple[str, ...]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class FrontOptions:
    """Who may use a gateway."""

    allow_host: Annotated[
        Texts,
        Parameter(
            negative=(),
            help="Another name of this server: shop.example.com, *.shop.internal; * for any.",
            env_var="STYX_ALLOW_HOST",
        ),
    ] = ()
    allow_origin: Annotated[
        Texts,
        Parameter(
            negative=(),
            help="Another origin whose pages may use the server: https://shop.example.com.",
            env_var="STYX_ALLOW_ORIGIN",
        ),
    ] = ()
    trust_proxy: Annotated[
        Texts,
        Parameter(
            negative=(),
            help="A proxy whose X-Forwarded-For counts: 10.0.0.7, 10.0.0.0/8.",
            env_var="STYX_TRUST_PROXY",
        ),
    ] = ()
    anonymous: Annotated[
        bool,
        Parameter(
            negative=(), help="Serve everybody without credentials, beyond this machine too.", env_var="STYX_ANONYMOUS"
        ),
    ] = False
    api_keys: Annotated[
        Path | None,
        Parameter(help="File of API keys, of styx keys; read again when it changes.", env_var=API_KEYS_VARIABLE),
    ] = None
    jwt_keys: Annotated[
        str | None,
        Parameter(help="Tokens' signing keys: https://… or a file, a JWK set or PEM.", env_var="STYX_JWT_KEYS"),
    ] = None
    jwt_issuer: Annotated[str | None, Parameter(help="The tokens' issuer (iss).", env_var="STYX_JWT_ISSUER")] = None
    jwt_audience: Annotated[
        Texts, Parameter(negative=(), help="The tokens' audience (aud): one of these.", env_var="STYX_JWT_AUDIENCE")
    ] = ()
    jwt_algorithm: Annotated[
        Texts,
        Parameter(
            negative=(),
            help="The tokens' algorithms; RS256, PS256, ES256, EdDSA by default.",
            env_var="STYX_JWT_ALGORITHM",
        ),
    ] = ()
    policy: Annotated[
        Path | None,
        Parameter(help="File of rules: who may do what; by default all may do everything.", env_var="STYX_POLICY"),
    ] = None
    rate_limit: Annotated[
        float | None, Parameter(help="Requests a second for each key or token's subject.", env_var="STYX_RATE_LIMIT")
    ] = None
    in_flight_limit: Annotated[
        int | None,
        Parameter(help="Requests in flight for each key or token's subject.", env_var="STYX_IN_FLIGHT_LIMIT"),
    ] = None
    webhook: Annotated[
        Texts,
        Parameter(
            negative=(),
            help="An event that may be posted without a credential: its inlet checks a signature.",
            env_var="STYX_WEBHOOK",
        ),
    ] = ()
    tls_cert: Annotated[
        Path | None, Parameter(help="PEM certificate of the server: it serves https.", env_var="STYX_GATEWAY_TLS_CERT")
    ] = None
    tls_key: Annotated[Path | None, Parameter(help="PEM key of --tls-cert.", env_var="STYX_GATEWAY_TLS_KEY")] = None

    @property
    def guarded(self) -> bool:
        """Whether a request needs a credential."""
        return self.api_keys is not None or self.jwt_keys is not None

    def words(self) -> list[str]:
        """The options as arguments of another process's command line."""
        words = ["--anonymous"] if self.anonymous else []
        for option, value in (
            ("--api-keys", self.api_keys),
            ("--jwt-keys", self.jwt_keys),
            ("--jwt-issuer", self.jwt_issuer),
            ("--policy", self.policy),
            ("--rate-limit", self.rate_limit),
            ("--in-flight-limit", self.in_flight_limit),
            ("--tls-cert", self.tls_cert),
            ("--tls-key", self.tls_key),
        ):
            words += [] if value is None else [option, str(value)]
        for option, values in (
            ("--allow-host", self.allow_host),
            ("--allow-origin", self.allow_origin),
            ("--trust-proxy", self.trust_proxy),
            ("--jwt-audience", self.jwt_audience),
            ("--jwt-algorithm", self.jwt_algorithm),
            ("--webhook", self.webhook),
        ):
            words += [word for value in values for word in (option, value)]
        return words


def front_of(options: FrontOptions, host: str) -> Front:
    """The front of a gateway that listens on `host`. Raises `ConfigurationError` for a wrong option."""
    from styx.errors import ConfigurationError
    from styx.gateway.auth.access import Access, AccessOptions
    from styx.gateway.client_address import Proxies
    from styx.gateway.front import Front
    from styx.gateway.hosts import listed
    from styx.gateway.tls import GatewayTls

    if options.guarded and options.anonymous:
        raise ConfigurationError(
            "--anonymous serves everybody and cannot be combined with --api-keys or --jwt-keys: leave one out"
        )
    if not options.guarded and not options.anonymous and not only_here(host):
        raise ConfigurationError(
            f"{host} can be reached from other machines, and clients would not be authenticated.\n{ANYBODY}"
        )
    if (options.tls_cert is None) != (options.tls_key is None):
        raise ConfigurationError("--tls-cert and --tls-key belong together: give both, or none for http")
    access = AccessOptions(
        api_keys=options.api_keys,
        signing_keys=options.jwt_keys,
        issuer=options.jwt_issuer,
        audiences=tuple(listed(options.jwt_audience)),
        algorithms=tuple(listed(options.jwt_algorithm)),
        policy=options.policy,
        rate=options.rate_limit,
        in_flight=options.in_flight_limit,
        webhooks=tuple(listed(options.webhook)),
    )
    tls = None
    if options.tls_cert is not None and options.tls_key is not None:
        tls = GatewayTls(options.tls_cert, options.tls_key)
    front = Front(
        allowed_hosts=options.allow_host,
        allowed_origins=options.allow_origin,
        access=access,
        tls=tls,
        trusted_proxies=options.trust_proxy,
    )
    # Raise for a wrong value now, before anything else starts.
    front.rules(host, host)
    Proxies(front.trusted_proxies)
    if access.enabled:
        Access(access)
    return front


def only_here(host: str) -> bool:
    """Whether only this machine reaches a server that listens on `host`."""
    import socket

    from styx.gateway.hosts import is_any_address, is_loopback

    if is_loopback(host):
        return True
    if is_any_address(host):
        return False
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return False
    return all(is_loopback(str(address[4][0])) for address in found)
