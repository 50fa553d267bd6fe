"""`styx dead`: the calls for later that were given up, listed, tried again or dropped through a gateway."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import App, Parameter

from styx.cli.common_options import ApiKey, Authority, GatewayUrl, OperatorName, ReplyTimeout, check_timeout
from styx.model.limits import TIMEOUT_SECONDS_DEFAULT, TIMEOUT_SECONDS_MAX

if TYPE_CHECKING:
    from collections.abc import Iterator

    from styx.cli.gateway_request import GatewayWork

_EXIT_CODES: Final = """\
Exit codes:
  0    done
  1    no gateway, no reply in time, or the call cannot be tried again
  2    rejected: no such operator or key, or what is no id
"""
LIST_EXAMPLES: Final = f"""\
Examples:
  styx dead list
  styx dead list order
  styx dead list order --key o17
  styx dead list order --json | jq -r .error_type | sort | uniq -c

{_EXIT_CODES}"""
REPLAY_EXAMPLES: Final = f"""\
Examples:
  styx dead replay order kqNvMTevMDAw
  styx dead replay order --all

{_EXIT_CODES}  3    it is not there any more
"""
DROP_EXAMPLES: Final = f"""\
Examples:
  styx dead drop order kqNvMTevMDAw
  styx dead drop order --all

{_EXIT_CODES}  3    it is not there any more
"""
_PAGE: Final = 500

CallId = Annotated[str | None, Parameter(help="The call's id, as styx dead list prints it.")]
All = Annotated[bool, Parameter(name="--all", negative=(), help="All that are there when the command begins.")]


def dead(sort_key: int) -> App:
    """The group of commands `styx dead`; `sort_key` is its place in the list of commands."""
    commands = App(
        name="dead", help="Work on calls for later that were given up.", help_format="plaintext", sort_key=sort_key
    )
    commands.command(list_, name="list", help_epilogue=LIST_EXAMPLES)
    commands.command(replay, help_epilogue=REPLAY_EXAMPLES)
    commands.command(drop, help_epilogue=DROP_EXAMPLES)
    return commands


def list_(
    operator: Annotated[
        str | None, Parameter(help="The operator whose entities gave them; all if it is left out.")
    ] = None,
    /,
    *,
    key: Annotated[str | None, Parameter(help="Only those that the entity with this key gave.")] = None,
    json: Annotated[bool, Parameter(negative=(), help="A line of JSON for each, with its arguments.")] = False,
    url: GatewayUrl = None,
    timeout: ReplyTimeout = TIMEOUT_SECONDS_DEFAULT,
    api_key: ApiKey = None,
    ca: Authority = None,
) -> None:
    """List the dead calls of an operator: those that its entities gave.

    They come slot by slot, and the oldest of each first. --timeout is for each
    page of the list.
    """
    import msgspec

    from styx.cli.exit_codes import usage_error

    if operator is None and key is not None:
        raise usage_error("--key is of an entity of one operator: name the operator as well")
    gateway = _Gateway(url, timeout, api_key, ca)
    for name in gateway.operators() if operator is None else [operator]:
        number = 0
        for call in gateway.calls(name, key):
            number += 1
            if json:
                print(msgspec.json.encode({"operator_of_giver": name, **call}).decode())
            else:
                print(_line(call))
        if not json and (number or operator is not None):
            print(f"{number} dead call{'' if number == 1 else 's'} of {name}", file=sys.stderr)


def replay(
    operator: OperatorName,
    call_id: CallId = None,
    /,
    *,
    all_: All = False,
    url: GatewayUrl = None,
    timeout: ReplyTimeout = TIMEOUT_SECONDS_DEFAULT,
    api_key: ApiKey = None,
    ca: Authority = None,
) -> int:
    """Have a dead call tried again at once, with all its attempts.

    If it fails again, it is a dead call again. Each is a transaction of its own.
    """
    return _change(_Gateway(url, timeout, api_key, ca), operator, call_id, all_, "replay")


def drop(
    operator: OperatorName,
    call_id: CallId = None,
    /,
    *,
    all_: All = False,
    url: GatewayUrl = None,
    timeout: ReplyTimeout = TIMEOUT_SECONDS_DEFAULT,
    api_key: ApiKey = None,
    ca: Authority = None,
) -> int:
    """Remove a dead call for ever. Each is a transaction of its own."""
    return _change(_Gateway(url, timeout, api_key, ca), operator, call_id, all_, "drop")


def _change(gateway: _Gateway, operator: str, call_id: str | None, everything: bool, act: str) -> int:
    from styx.cli.exit_codes import ABSENT, SUCCESS, usage_error

    if (call_id is None) != everything:
        raise usage_error(f"styx dead {act} takes the id of one call, or --all")
    if call_id is not None:
        if gateway.change(operator, call_id, act):
            return SUCCESS
        print(f"absent: {operator} has no such dead call any more", file=sys.stderr)
        return ABSENT
    # Listed first: a call that fails again at once would be found again, and again.
    ids = [call["id"] for call in gateway.calls(operator, None)]
    done = sum(gateway.change(operator, each, act) for each in ids)
    print(f"{done} of {len(ids)} dead calls of {operator}: {'tried again' if act == 'replay' else 'dropped'}")
    return SUCCESS


class _Gateway:
    """The gateway at `url`; raises `CommandFailed` for whatever goes wrong with it."""

    def __init__(self, url: str | None, timeout: float, api_key: str | None, ca: Path | None) -> None:
        from styx.cli.run_directory import gateway_url

        check_timeout(timeout, TIMEOUT_SECONDS_MAX)
        self._url = gateway_url(url)
        self._options = (timeout, api_key, ca)

    def calls(self, operator: str, key: str | None) -> Iterator[dict[str, Any]]:
        """All dead calls, asked for page by page."""
        from urllib.parse import urlencode

        from styx.cli.gateway_request import GatewayWork

        wanted: dict[str, Any] = {"first": _PAGE} | ({} if key is None else {"key": key})
        while True:
            page = self._ask(GatewayWork("GET", f"{_path(operator)}?{urlencode(wanted)}", *self._options))
            yield from page["calls"]
            if page["next"] is None:
                return
            wanted["after"] = page["next"]

    def operators(self) -> list[str]:
        """The names of the app's operators, as the gateway describes it."""
        import msgspec

        from styx.cli.exit_codes import CommandFailed
        from styx.cli.gateway_request import GatewayWork, NoReply, ask
        from styx.gateway.openapi_dead import TAG
        from styx.gateway.openapi_edits import TAG as EDITS_TAG

        try:
            answer = ask(self._url, GatewayWork("GET", "/openapi.json", *self._options))
            names = [tag["name"] for tag in msgspec.json.decode(answer.body)["tags"]]
            return [name for name in names if name not in (TAG, EDITS_TAG)]
        except (NoReply, msgspec.DecodeError, KeyError, TypeError):
            raise CommandFailed(f"{self._url} does not say which operators there are: name the operator") from None

    def change(self, operator: str, call_id: str, act: str) -> bool:
        """Tries a call again, or drops it; whether it was there."""
        from styx.cli.gateway_request import GatewayWork

        return bool(self._ask(GatewayWork("POST", f"{_path(operator, call_id)}/{act}", *self._options)))

    def _ask(self, work: GatewayWork) -> Any:
        import msgspec

        from styx.cli.exit_codes import SUCCESS, CommandFailed
        from styx.cli.gateway_request import NoReply, ask, read_outcome

        try:
            outcome = read_outcome(ask(self._url, work), self._url)
        except NoReply as error:
            raise CommandFailed(f"{error}; ask again: what was done stays done") from None
        if outcome.exit_code != SUCCESS:
            raise CommandFailed(outcome.complaint.removeprefix("styx: "), outcome.exit_code)
        return msgspec.json.decode(outcome.output)


def _path(operator: str, *more: str) -> str:
    from urllib.parse import quote

    from styx.cli.exit_codes import usage_error

    try:
        return "/v1/~dead/" + "/".join(quote(part, safe="") for part in (operator, *more))
    except UnicodeEncodeError:
        raise usage_error("the operator or the id is not valid Unicode") from None


def _line(call: dict[str, Any]) -> str:
    import msgspec

    giver, key = (msgspec.json.encode(call[name]).decode() for name in ("giver", "key"))
    return (
        f"{call['id']}  {call['died_at'][:19]}Z  {giver} gave {call['operator']}.{call['function']} on {key}, "
        f"{call['attempts']} attempts: {call['error_type']}: {call['error_message']}"
    )
