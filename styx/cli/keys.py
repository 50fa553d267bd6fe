"""`styx keys`: the API keys of a gateway, in a file that keeps their hashes; lines of a replica's PostgreSQL users."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from cyclopts import App, Parameter

from styx.cli.front_options import API_KEYS_VARIABLE

FILE_DEFAULT: Final = Path("keys.json")
DAYS_MAX: Final = 36_500.0
EXAMPLES: Final = """\
Examples:
  styx keys add shop                      print a new key, once
  styx keys add shop --days 90 --rate 100
  styx keys list
  styx keys revoke 1a2b3c4d               the one with this id
  styx keys revoke shop                   all of this name
  styx keys postgres ann >> users.txt     asks for a password; see styx replica

Gateways with --api-keys FILE follow within two seconds, without a restart. To
change a key: add one of the same name, use it, revoke the old one by its id.
"""

KeysPath = Annotated[
    Path, Parameter(name="--file", help="The file of keys; add makes it if it is not there.", env_var=API_KEYS_VARIABLE)
]


def add(
    name: Annotated[str, Parameter(help="Whose key it is, for rules and logs.")],
    /,
    *,
    file: KeysPath = FILE_DEFAULT,
    days: Annotated[float | None, Parameter(help="Days until it expires; never by default.")] = None,
    rate: Annotated[float | None, Parameter(help="Requests a second that it may send.")] = None,
    in_flight: Annotated[int | None, Parameter(help="Requests that it may have in flight.")] = None,
) -> None:
    """Make a key and print it. It cannot be shown again: the file has its hash."""
    from datetime import timedelta

    import msgspec

    from styx.cli.exit_codes import usage_error
    from styx.gateway.auth import api_keys
    from styx.gateway.auth.api_keys import new_key, utc_now

    if days is not None and not 0 < days <= DAYS_MAX:
        raise usage_error(f"--days is a number above 0 and up to {DAYS_MAX:g}, got {days:g}")
    now = utc_now()
    expires = None if days is None else (now + timedelta(days=days)).replace(microsecond=0)
    text, entry = new_key(name, now, expires)
    entry = msgspec.structs.replace(entry, rate=rate, in_flight=in_flight)
    api_keys.change_file(file, lambda keys: [*keys, entry])
    print(text)


def show(*, file: KeysPath = FILE_DEFAULT) -> None:
    """List the keys: name, id, when made, when they expire, limits."""
    from styx.gateway.auth import api_keys
    from styx.gateway.auth.api_keys import utc_now

    now = utc_now()
    for key in api_keys.read_file(file).keys:
        facts = [key.name, key.id]
        facts += [f"made {key.created:%Y-%m-%d}"] if key.created is not None else []
        if key.expires is not None:
            facts.append(f"{'expired' if key.expires <= now else 'expires'} {key.expires:%Y-%m-%d}")
        facts += [f"{key.rate:g}/s"] if key.rate is not None else []
        facts += [f"{key.in_flight} at once"] if key.in_flight is not None else []
        print("  ".join(facts))


def revoke(
    which: Annotated[str, Parameter(name="NAME|ID", help="A key's id, or the name of all that are to go.")],
    /,
    *,
    file: KeysPath = FILE_DEFAULT,
) -> None:
    """Remove keys from the file: their owners are no longer served."""
    from styx.cli.exit_codes import CommandFailed
    from styx.gateway.auth import api_keys
    from styx.gateway.auth.api_keys import ApiKey

    gone: list[ApiKey] = []

    def without(keys: list[ApiKey]) -> list[ApiKey]:
        gone.extend([key for key in keys if key.id == which] or [key for key in keys if key.name == which])
        if not gone:
            raise CommandFailed(f"no key in {file} has the id or the name {which}; styx keys list shows them")
        return [key for key in keys if key not in gone]

    api_keys.change_file(file, without)
    for key in gone:
        print(f"revoked {key.name}  {key.id}")


def postgres(
    name: Annotated[str, Parameter(help="The name that clients log in with.")],
    /,
) -> None:
    """Print a user's line for the file of styx replica --postgres-users.

    It asks for the password on a terminal. Otherwise it reads a line of standard
    input.
    """
    import sys
    from getpass import getpass

    from styx.cli.exit_codes import usage_error
    from styx.postgres.users import user_line

    password = getpass(f"Password of {name}: ") if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
    if not password:
        raise usage_error("the password is empty: type one, or write it to standard input")
    print(user_line(name, password))


def keys(sort_key: int) -> App:
    """The group of commands; `sort_key` is its place among others."""
    text = "API keys of a gateway: add, list, revoke; users of a replica's PostgreSQL port."
    group = App(name="keys", sort_key=sort_key, help_format="plaintext", help=text, help_epilogue=EXAMPLES)
    group.command(add)
    group.command(show, name="list")
    group.command(revoke)
    group.command(postgres)
    return group
