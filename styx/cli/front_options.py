"""Options of what stands before a gateway, the same for every command that starts one. Declarations for the parser, and
nothing heavy behind them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

if TYPE_CHECKING:
    from styx.gateway.front import Front


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class FrontOptions:
    """Who may use a gateway."""

    allow_host: Annotated[
        tuple[str, ...],
        Parameter(
            negative=(),
            help="Another name it is reached by: shop.example.com, *.shop.internal; * for any.",
            env_var="STYX_ALLOW_HOST",
        ),
    ] = ()
    allow_origin: Annotated[
        tuple[str, ...],
        Parameter(
            negative=(),
            help="Another origin whose pages may use it: https://shop.example.com.",
            env_var="STYX_ALLOW_ORIGIN",
        ),
    ] = ()

    def words(self) -> list[str]:
        """The same options, for a gateway that is a process of its own."""
        words = [word for host in self.allow_host for word in ("--allow-host", host)]
        return words + [word for origin in self.allow_origin for word in ("--allow-origin", origin)]


def front_of(options: FrontOptions, host: str) -> Front:
    """What stands before a gateway that listens on `host`; raises `ConfigurationError` for an option that is wrong."""
    from styx.gateway.front import Front

    front = Front(allowed_hosts=options.allow_host, allowed_origins=options.allow_origin)
    front.rules(host, host)
    return front
